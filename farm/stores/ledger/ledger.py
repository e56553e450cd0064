"""The port's face over an SQL database: each method is one transaction, off the event loop."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection, literal, select

from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.core.retry import Doubt
from farm.stores.ledger import (
    attempts,
    claiming,
    evidence,
    files,
    forgetting,
    history,
    items,
    jobs,
    membership,
    moving,
    queue,
    recordings,
    tokens,
)
from farm.stores.ledger.database import Database, Timed
from farm.stores.ports.timing import Observe, unobserved
from farm.stores.records import (
    Artifact,
    Attempt,
    Controlled,
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

T = TypeVar("T")

_ITEMS_AT_ONCE = 500
_NOTHING = select(literal(1))


class SqlLedger:
    """The `Ledger` port; what a method promises is said there.

    A caller that is cancelled while it waits can't tell whether its transaction was committed.
    """

    def __init__(self, database: Database, *, observe: Observe = unobserved) -> None:
        self._db = Timed(database, observe)

    @property
    def database(self) -> Database:
        """What other faces of the same data work with, for as long as this is open."""
        return self._db.database

    async def open(self) -> int:
        """Open the database, count this start and return its number."""
        await self._db.open()
        if self._db.life is not None:
            return self._db.life
        try:
            return await self._db.write(membership.count_start)
        except BaseException:
            await self._db.close()
            raise

    async def close(self) -> None:
        """Close the database."""
        await self._db.close()

    async def check(self) -> None:
        """Return if the database answers."""
        await self._db.read(lambda db: db.execute(_NOTHING))

    async def accept(self, job: NewJob, *, now: Instant) -> tuple[Job, bool]:
        """Add a job once per idempotency key."""
        return await self._db.write(lambda db: jobs.accept(db, job, now))

    async def job(self, namespace: Namespace, job_id: str) -> Job:
        """Return one job."""
        return await self._db.read(lambda db: jobs.job(db, namespace, job_id))

    async def record_of(self, namespace: Namespace, job_id: str, *, events: int) -> JobRecord:
        """Return one job with its history."""
        return await self._db.read(lambda db: _record_of(db, namespace, job_id, events))

    async def jobs(
        self, namespace: Namespace, *, state: JobState | None, before: str | None, limit: int
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        return await self._db.read(
            lambda db: jobs.page(db, namespace, state=state, before=before, limit=limit)
        )

    async def due(
        self,
        *,
        now: Instant,
        without_keys: frozenset[str],
        without_jobs: frozenset[str],
        served: Sequence[Namespace] = (),
        limit: int,
    ) -> Due:
        """Return the jobs that are next, and when the next of the others may start."""
        without = queue.Without(keys=without_keys, jobs=without_jobs)
        return await self._db.read(lambda db: _due(db, now, without, served, limit, self._db.life))

    async def counts(self) -> Mapping[JobState, int]:
        """Count the jobs by state, with 0 for a state that none is in."""
        return await self._db.read(jobs.counts)

    async def controls(self) -> Mapping[Control, int]:
        """Count the jobs that have not ended by who has control, with 0 where there are none."""
        return await self._db.read(jobs.controls)

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
        """Take a queued job for an attempt; of many who ask, one gets it."""
        wanted = attempts.Start(
            job_id=job_id,
            attempt_id=attempt_id,
            command_id=command_id,
            client_id=client_id,
            epoch=epoch,
            context_id=context_id,
            token=token,
            recordings=recordings,
        )
        return await self._db.write(lambda db: attempts.start(db, wanted, now, self._db.life))

    async def attempt(self, attempt_id: str) -> Attempt:
        """Return one attempt."""
        return await self._db.read(lambda db: attempts.one(db, attempt_id))

    async def job_of_attempt(self, attempt_id: str) -> Job:
        """Return the job an attempt is of."""
        return await self._db.read(lambda db: attempts.job_of(db, attempt_id))

    async def attempts(
        self, job_id: str, *, namespace: Namespace | None = None
    ) -> Sequence[Attempt]:
        """Return a job's attempts in order."""
        return await self._of(namespace, job_id, lambda db: attempts.of_job(db, job_id))

    async def running_attempts(self) -> Sequence[Attempt]:
        """Return the attempts that have not ended, oldest first."""
        return await self._db.read(attempts.running)

    async def record(
        self, attempt_id: str, token: Token, evidence: Sequence[Evidence], *, now: Instant
    ) -> int | None:
        """Store evidence once and without gaps; what follows a gap is left to be sent again."""
        return await self._db.write(
            lambda db: _record(db, attempt_id, token, evidence, self._db.life)
        )

    async def add_event(
        self,
        job_id: str,
        type: str,
        data: Mapping[str, object],
        *,
        attempt_id: str | None,
        now: Instant,
    ) -> None:
        """Add one line to a job's history. Raises NotFoundError."""
        await self._db.write(
            lambda db: history.add(db, job_id, (type, data, now), attempt_id=attempt_id)
        )

    async def effects(
        self, job_id: str, *, attempt_id: str | None = None, namespace: Namespace | None = None
    ) -> Sequence[Effect]:
        """Return effects in the order they were told."""
        return await self._of(
            namespace, job_id, lambda db: evidence.effects(db, job_id, attempt_id)
        )

    async def finish(self, finish: Finish, *, now: Instant) -> Job | None:
        """End an attempt and move its job.

        A job that was to be cancelled and would be tried again, or timed out, is cancelled.
        """
        return await self._db.write(lambda db: attempts.finish(db, finish, now, self._db.life))

    async def request_cancel(
        self, namespace: Namespace, job_id: str, *, now: Instant, by: str = ""
    ) -> Job:
        """Cancel a queued job, mark a running one; an uncertain one is to be resolved instead."""
        return await self._db.write(
            lambda db: moving.request_cancel(db, namespace, job_id, now, by)
        )

    async def hold_queued(
        self, namespace: Namespace, job_id: str, *, paused: bool, by: str, now: Instant
    ) -> Job | None:
        """Pause or resume a job in the queue."""
        control = Control.PAUSED if paused else Control.AUTOMATION
        to = Controlled(control=control, by=by)
        return await self._db.write(lambda db: moving.hold_queued(db, namespace, job_id, to, now))

    async def resolve(
        self, namespace: Namespace, job_id: str, to: JobState, *, now: Instant, by: str = ""
    ) -> Job:
        """Decide an uncertain job."""
        return await self._db.write(lambda db: moving.resolve(db, namespace, job_id, to, now, by))

    async def retry(
        self, namespace: Namespace, job_id: str, on_uncertain: Doubt, *, now: Instant, by: str = ""
    ) -> Job:
        """Run a job again that has ended without success."""
        return await self._db.write(
            lambda db: moving.retry(db, namespace, job_id, on_uncertain, now, by)
        )

    async def forget_jobs(self, namespace: Namespace) -> int:
        """Delete the jobs that have ended."""
        return await self._db.write(lambda db: forgetting.forget_jobs(db, namespace))

    async def events(
        self, job_id: str, *, after: int, limit: int = 1000, namespace: Namespace | None = None
    ) -> Sequence[JobEvent]:
        """Return a job's history after a number."""
        return await self._of(namespace, job_id, lambda db: history.after(db, job_id, after, limit))

    async def items(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        every: bool = False,
        dataset: str | None = None,
        namespace: Namespace | None = None,
    ) -> AsyncIterator[Item]:
        """Yield items in order, a bounded number in memory at a time."""
        wanted = items.Wanted(
            job_id=job_id, namespace=namespace, attempt=attempt, every=every, dataset=dataset
        )
        part = await self._db.read(lambda db: items.first(db, wanted, _ITEMS_AT_ONCE))
        for item in part.items:
            yield item
        while part.more:
            part = await self._db.read(_following(part))
            for item in part.items:
                yield item

    async def add_artifact(self, artifact: Artifact, token: Token) -> Artifact | None:
        """Add a file, under a name that is free."""
        return await self._db.write(lambda db: files.add(db, artifact, token))

    async def artifacts(
        self, job_id: str, *, namespace: Namespace | None = None
    ) -> Sequence[Artifact]:
        """Return a job's files in order."""
        return await self._of(namespace, job_id, lambda db: files.of_job(db, job_id))

    async def recordings_size(self, namespace: Namespace) -> int:
        """Return how many bytes a namespace's recordings have."""
        return await self._db.read(lambda db: recordings.size(db, namespace))

    async def _of(
        self, namespace: Namespace | None, job_id: str, work: Callable[[Connection], T]
    ) -> T:
        """Read something of a job, if the namespace, where one is given, has it."""

        def checked(db: Connection) -> T:
            jobs.check_namespace(db, namespace, job_id)
            return work(db)

        return await self._db.read(checked)

    async def add_token(self, token: TokenRecord) -> None:
        """Remember a token."""
        await self._db.write(lambda db: tokens.add(db, token))

    async def token(self, sha256: str) -> TokenRecord | None:
        """Return the token with this hash, unless revoked."""
        return await self._db.read(lambda db: tokens.valid(db, sha256))

    async def tokens(self, *, namespace: Namespace | None = None) -> Sequence[TokenRecord]:
        """Return those that are not revoked."""
        return await self._db.read(lambda db: tokens.valid_of(db, namespace))

    async def revoke_token(
        self, token_id: str, *, now: Instant, namespace: Namespace | None = None
    ) -> None:
        """Let a token open nothing any more. Raises NotFoundError."""
        await self._db.write(lambda db: tokens.revoke(db, token_id, now, namespace))


def _record(
    connection: Connection,
    attempt_id: str,
    token: Token,
    entries: Sequence[Evidence],
    life: int | None,
) -> int | None:
    return evidence.record(connection, attempt_id, token, entries, life)


def _due(
    connection: Connection,
    now: Instant,
    without: queue.Without,
    served: Sequence[Namespace],
    limit: int,
    life: int | None,
) -> Due:
    if life is not None:
        claimed = claiming.claimed_by_others(connection, life)
        without = queue.Without(keys=without.keys, jobs=without.jobs | claimed)
    return queue.due(connection, now, without, served, limit)


def _record_of(connection: Connection, namespace: Namespace, job_id: str, events: int) -> JobRecord:
    return JobRecord(
        job=jobs.job(connection, namespace, job_id),
        attempts=attempts.of_job(connection, job_id),
        effects=evidence.effects(connection, job_id, None),
        events=history.after(connection, job_id, 0, events),
    )


def _following(part: items.Part) -> Callable[[Connection], items.Part]:
    return lambda db: items.following(db, part, _ITEMS_AT_ONCE)
