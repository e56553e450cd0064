"""What the manager and the jobs need from a store. Every method takes `now`: stores read no clock.

Each Protocol has one conformance suite under tests/stores/, which runs unchanged on every
implementation. A method raises `StoreUnavailableError` when the store can't be read; it never
answers with an empty result instead.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from farm.core.job_states import JobState
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    Snapshot,
    Token,
    Window,
    WindowId,
)
from farm.core.reservation import Denial
from farm.stores.records import (
    Artifact,
    Attempt,
    Effect,
    Evidence,
    Finish,
    Item,
    Job,
    JobEvent,
    NewJob,
    TokenRecord,
)


class ConnectionRegistry(Protocol):
    """Who is there, by heartbeat, and with which exact metadata."""

    async def register(
        self,
        client: Client,
        *,
        epoch_name: str,
        highest_token: Token | None,
        now: Instant,
    ) -> Client | Denial:
        """Let an agent in on `client.link`; return it with its epoch number as stored.

        The same `epoch_name` of a known client keeps its number, contexts and assignments; a new
        one gets the next number and starts with none. Refused with IN_USE while another instance
        of the same client_id is present on a link of its own, or away and not yet removed while it
        holds assignments, which it may still be running.
        """
        ...

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that a frame of the agent's runtime came; False if `link` is not the current one."""
        ...

    async def set_draining(self, client_id: ClientId) -> None:
        """Let the agent take nothing new."""
        ...

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that the link closed; the contexts stay, not selectable. False if not current."""
        ...

    async def remove(self, client_id: ClientId, *, epoch: int) -> tuple[Assignment, ...]:
        """Forget an epoch of a client that is known to be gone; return what it held."""
        ...


class ContextRegistry(Protocol):
    """What agents have, and which task holds which of it."""

    async def snapshot(self, *, now: Instant) -> Snapshot:
        """Return every client with its windows, contexts and assignments, read at one moment."""
        ...

    async def report(
        self,
        client_id: ClientId,
        link: LinkId,
        *,
        epoch: int,
        number: int,
        windows: Sequence[Window],
        contexts: Sequence[Context],
        now: Instant,
    ) -> tuple[Assignment, ...] | Denial:
        """Replace the picture of one epoch (P1); return the assignments whose context is gone.

        Denied with STALE for an older number, another epoch or another link, changing nothing.
        """
        ...

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """Re-check the context and take it with one slot, in one step (P4)."""
        ...

    async def restore(self, assignment: Assignment) -> bool:
        """Put back an assignment the agent still runs, after the registry lost its memory.

        False where the context is gone or held by another.
        """
        ...

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        """Extend an assignment; None if it is not the one that holds."""
        ...

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """Tell whether the assignment under this token is the one that holds (P8)."""
        ...

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """End an assignment; the context is dirty until its agent reports it clean (P9)."""
        ...

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        """End every assignment whose time is over, and return them."""
        ...


class BrowserWindowRegistry(Protocol):
    """Windows being created, counted against the negotiated capacity."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> int | Denial:
        """Reserve a window, its first tab and a slot; return the epoch it is for."""
        ...

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """Reserve a tab in a window, and a slot; return the epoch it is for."""
        ...

    async def cancel_window(self, client_id: ClientId, *, epoch: int, identity: str | None) -> None:
        """Give a reserved window back; does nothing in a later epoch."""
        ...

    async def cancel_tab(self, client_id: ClientId, window_id: WindowId, *, epoch: int) -> None:
        """Give a reserved tab back; does nothing in a later epoch."""
        ...

    async def settle_window(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        epoch: int,
        identity: str | None,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """Turn a reserved window into the assignment of its first tab, in one step.

        Denied with NOT_READY until the context has been reported; the reservation then stays.
        """
        ...

    async def settle_tab(
        self,
        request: Request,
        client_id: ClientId,
        window_id: WindowId,
        context_id: ContextId,
        *,
        epoch: int,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """The same for a reserved tab."""
        ...


class Wakes(Protocol):
    """Tells waiters that something may have changed (P7)."""

    def generation(self) -> int:
        """Return the number of the last change; read it before reading the state."""
        ...

    async def changed_since(self, generation: int) -> None:
        """Return as soon as there has been a change after `generation`."""
        ...


class Registry(ConnectionRegistry, ContextRegistry, BrowserWindowRegistry, Wakes, Protocol):
    """All four over one atomic store."""


class Ledger(Protocol):
    """Jobs, attempts and their evidence, durable. Each method is one transaction."""

    async def open(self) -> int:
        """Bring the schema up to date, count this start, and return its number (store epoch)."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
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

    async def jobs(
        self, namespace: Namespace, *, state: JobState | None, before: str | None, limit: int
    ) -> Sequence[Job]:
        """Return jobs, newest first; `before` is the job_id of the last one seen."""
        ...

    async def next_queued(
        self, *, now: Instant, without_keys: frozenset[str], without_jobs: frozenset[str]
    ) -> Job | None:
        """Return the oldest queued job that may start now, of a match key not named."""
        ...

    async def next_start(self, *, now: Instant) -> Instant | None:
        """Return when the first queued job that has to wait may start."""
        ...

    async def counts(self) -> Mapping[JobState, int]:
        """Count the jobs by state."""
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
        now: Instant,
    ) -> Attempt | None:
        """Move a queued job to running with a new attempt; None if it is queued no more."""
        ...

    async def attempt(self, attempt_id: str) -> Attempt:
        """Return one attempt. Raises NotFoundError."""
        ...

    async def job_of_attempt(self, attempt_id: str) -> Job:
        """Return the job an attempt is of, whatever its namespace. Raises NotFoundError."""
        ...

    async def attempts(self, job_id: str) -> Sequence[Attempt]:
        """Return a job's attempts in order."""
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

    async def effects(self, job_id: str, *, attempt_id: str | None = None) -> Sequence[Effect]:
        """Return the effects of a job, or of one attempt, in order."""
        ...

    async def finish(self, finish: Finish, *, now: Instant) -> Job | None:
        """End an attempt and move its job on; None if the attempt had ended already."""
        ...

    async def request_cancel(self, namespace: Namespace, job_id: str, *, now: Instant) -> Job:
        """Cancel a queued job at once, mark a running one; do nothing to one that has ended.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If the job has ended in another way than by cancelling.
        """
        ...

    async def resolve(
        self, namespace: Namespace, job_id: str, to: JobState, *, now: Instant
    ) -> Job:
        """Decide an uncertain job: SUCCEEDED, FAILED, or QUEUED for another attempt.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If the job is not uncertain.
        """
        ...

    async def events(self, job_id: str, *, after: int, limit: int = 1000) -> Sequence[JobEvent]:
        """Return a job's history after number `after`."""
        ...

    def items(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        every: bool = False,
        dataset: str | None = None,
    ) -> AsyncIterator[Item]:
        """Yield items in order: those of the attempt that counts, of one by number, or all.

        The one that counts is the succeeded attempt, else the latest with the most items.
        """
        ...

    async def add_artifact(self, artifact: Artifact, token: Token) -> Artifact | None:
        """Add a file; a name that is taken in the job gets a number before its ending.

        None where the attempt has ended or `token` is not its own.
        """
        ...

    async def artifacts(self, job_id: str) -> Sequence[Artifact]:
        """Return a job's files in order."""
        ...

    async def add_token(self, token: TokenRecord) -> None:
        """Remember a token."""
        ...

    async def token(self, sha256: str) -> TokenRecord | None:
        """Return the token with this hash, unless revoked."""
        ...

    async def revoke_token(self, token_id: str, *, now: Instant) -> None:
        """Let a token open nothing any more; again is no error, and the first time counts.

        Raises:
            NotFoundError: If there is no such token.
        """
        ...


class StoredFile(Protocol):
    """A file being written; `commit` makes it visible, leaving without it removes it."""

    async def write(self, chunk: bytes) -> None:
        """Append.

        Raises:
            ArtifactStoreFullError: If there is no room.
            TooLargeError: If the file is over the limit.
        """
        ...

    async def commit(self) -> tuple[str, int, str]:
        """Make it durable; return (key, size in bytes, sha256)."""
        ...


class ArtifactStore(Protocol):
    """Files, by key."""

    def create(self, job_id: str) -> AbstractAsyncContextManager[StoredFile]:
        """Begin a file of a job."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a file's bytes. Raises NotFoundError."""
        ...


__all__ = [
    "ArtifactStore",
    "BrowserWindowRegistry",
    "ConnectionRegistry",
    "ContextRegistry",
    "Ledger",
    "Registry",
    "StoredFile",
    "Wakes",
]
