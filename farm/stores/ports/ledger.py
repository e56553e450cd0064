"""The durable record of jobs."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import (
    ClientId,
    ContextId,
    Instant,
    Namespace,
    Token,
)
from farm.core.retry import Doubt
from farm.stores.records import (
    Artifact,
    Attempt,
    Due,
    Effect,
    Evidence,
    Expected,
    Finish,
    Item,
    Job,
    JobEvent,
    JobRecord,
    NewJob,
    TokenRecord,
)


class Ledger(Protocol):
    """Jobs, attempts and their evidence, durable. Each method is one transaction.

    It is the whole farm's: what a tenant may read and do is `farm.jobs.service.JobService`'s.
    """

    async def open(self) -> int:
        """Bring the schema up to date, count this start, and return its number (store epoch)."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...

    async def check(self) -> None:
        """Return if it answers. Raises StoreUnavailableError."""
        ...

    async def accept(self, job: NewJob, *, now: Instant) -> tuple[Job, bool]:
        """Add a job, or return the one with the same idempotency key and body: (job, duplicate).

        Raises:
            ConflictError: If the key was used in this namespace with another body.
        """
        ...

    async def job(self, namespace: Namespace, job_id: str) -> Job:
        """Return one job. Raises NotFoundError, also for one of another namespace."""
        ...

    async def record_of(self, namespace: Namespace, job_id: str, *, events: int) -> JobRecord:
        """Return one job with its attempts, its effects and its first events. As `job` raises."""
        ...

    async def jobs(
        self, namespace: Namespace, *, state: JobState | None, before: str | None, limit: int
    ) -> Sequence[Job]:
        """Return jobs, newest first; `before` is the job_id of the last one seen."""
        ...

    async def due(
        self,
        *,
        now: Instant,
        without_keys: frozenset[str],
        without_jobs: frozenset[str],
        served: Sequence[Namespace] = (),
        limit: int,
    ) -> Due:
        """Return the queued jobs that are next, but for some match keys and jobs.

        Namespaces take turns, in the order in which their jobs were last begun, and each gives its
        oldest job that may start now. `served` have had a turn since, in this order: their jobs
        are on their way to be begun.
        """
        ...

    async def counts(self) -> Mapping[JobState, int]:
        """Count the jobs by state."""
        ...

    async def controls(self) -> Mapping[Control, int]:
        """Count the jobs that have not ended by who has control."""
        ...

    async def start_attempt(
        self,
        job_id: str,
        *,
        attempt_id: str,
        command_id: str,
        client_id: ClientId,
        epoch: int,
        context_id: ContextId,
        token: Token,
        recordings: Sequence[Expected] = (),
        now: Instant,
    ) -> Attempt | None:
        """Move a queued job to running with a new attempt.

        None if it is queued no more, or another attempt has the identity it names (see
        `farm.stores.ports.identities`). The recordings it is to hand in are artifacts from here
        on, pending.
        """
        ...

    async def attempt(self, attempt_id: str) -> Attempt:
        """Return one attempt. Raises NotFoundError."""
        ...

    async def job_of_attempt(self, attempt_id: str) -> Job:
        """Return the job an attempt is of, whatever its namespace. Raises NotFoundError."""
        ...

    async def attempts(
        self, job_id: str, *, namespace: Namespace | None = None
    ) -> Sequence[Attempt]:
        """Return a job's attempts in order.

        Raises:
            NotFoundError: If `namespace` is given and has no such job.
        """
        ...

    async def running_attempts(self) -> Sequence[Attempt]:
        """Return every attempt that has not ended."""
        ...

    async def record(
        self, attempt_id: str, token: Token, evidence: Sequence[Evidence], *, now: Instant
    ) -> int | None:
        """Add evidence with a number above the attempt's last; return the last number stored.

        None where the attempt has ended or `token` is not its own: nothing is stored.
        """
        ...

    async def add_event(
        self,
        job_id: str,
        type: str,
        data: Mapping[str, object],
        *,
        attempt_id: str | None,
        now: Instant,
    ) -> None:
        """Add one line to a job's history."""
        ...

    async def effects(
        self, job_id: str, *, attempt_id: str | None = None, namespace: Namespace | None = None
    ) -> Sequence[Effect]:
        """Return the effects of a job, or of one attempt, in order."""
        ...

    async def finish(self, finish: Finish, *, now: Instant) -> Job | None:
        """End an attempt and move its job on; None if the attempt had ended already.

        Raises:
            ConflictError: If the attempt has said more since than what the end rests on.
        """
        ...

    async def request_cancel(
        self, namespace: Namespace, job_id: str, *, now: Instant, by: str = ""
    ) -> Job:
        """Cancel a queued job at once, mark a running one; do nothing to one that is cancelled.

        `by` says in the history who wants it.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If the job has ended in another way than by cancelling.
        """
        ...

    async def hold_queued(
        self, namespace: Namespace, job_id: str, *, paused: bool, by: str, now: Instant
    ) -> Job | None:
        """Pause a queued job, which is not begun until it is resumed; None if it is not queued.

        Raises:
            NotFoundError: If there is no such job.
        """
        ...

    async def resolve(
        self, namespace: Namespace, job_id: str, to: JobState, *, now: Instant, by: str = ""
    ) -> Job:
        """Decide an uncertain job: SUCCEEDED, FAILED, or QUEUED for another attempt.

        `by` says in the history who decides.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If the job is not uncertain.
        """
        ...

    async def retry(
        self, namespace: Namespace, job_id: str, on_uncertain: Doubt, *, now: Instant, by: str = ""
    ) -> Job:
        """Queue a job again that has failed, timed out or been cancelled; `by` is who wants it.

        It may be tried as often as a new one. One that is queued or running is left as it is.
        `on_uncertain` is the job's own.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it has succeeded, is uncertain or is being cancelled, or if its last
                attempt had an effect that might be repeated; `reason` is then a `Bar` (P12).
        """
        ...

    async def forget_jobs(self, namespace: Namespace) -> int:
        """Delete a namespace's jobs that have ended, as `JobRetention` does; return how many."""
        ...

    async def events(
        self, job_id: str, *, after: int, limit: int = 1000, namespace: Namespace | None = None
    ) -> Sequence[JobEvent]:
        """Return a job's history after number `after`. As `attempts` raises."""
        ...

    def items(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        every: bool = False,
        dataset: str | None = None,
        namespace: Namespace | None = None,
    ) -> AsyncIterator[Item]:
        """Yield items in order: those of the attempt that counts, of one by number, or all.

        The one that counts is the succeeded attempt, else the latest with the most items.

        Raises:
            NotFoundError: If `namespace` is given and has no such job.
        """
        ...

    async def add_artifact(self, artifact: Artifact, token: Token) -> Artifact | None:
        """Add a file; a name that is taken in the job gets a number before its ending.

        A recording becomes ready under the name it has been pending under.

        None where the attempt has ended or `token` is not its own, or where the recording is not
        pending.
        """
        ...

    async def artifacts(
        self, job_id: str, *, namespace: Namespace | None = None
    ) -> Sequence[Artifact]:
        """Return a job's files in order. As `attempts` raises."""
        ...

    async def recordings_size(self, namespace: Namespace) -> int:
        """Return how many bytes the recordings of a namespace's jobs have together."""
        ...

    async def add_token(self, token: TokenRecord) -> None:
        """Remember a token."""
        ...

    async def token(self, sha256: str) -> TokenRecord | None:
        """Return the token with this hash, unless revoked."""
        ...

    async def tokens(self, *, namespace: Namespace | None = None) -> Sequence[TokenRecord]:
        """Return the tokens that are not revoked, of those made in a namespace or of all.

        The oldest comes first.
        """
        ...

    async def revoke_token(
        self, token_id: str, *, now: Instant, namespace: Namespace | None = None
    ) -> None:
        """Let a token open nothing any more; again is no error, and the first time counts.

        Raises:
            NotFoundError: If there is no such token, or it was made in another namespace than the
                one that is given.
        """
        ...
