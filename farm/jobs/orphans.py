"""Attempts of earlier lives of the farm: taken up when their agents come back, or lost."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict, Unpack

import structlog

from farm.clock import Clock
from farm.core.model import Assignment, ClientId, ClientType, Instant, TaskId, Token
from farm.errors import StoreUnavailableError
from farm.jobs.attempts import AttemptRunner
from farm.jobs.files import JobSpec, Place
from farm.jobs.live import LiveAttempt
from farm.jobs.placement import request_for
from farm.manager.delivery import Send
from farm.manager.handle import ContextHandle
from farm.manager.manager import WorkerContextManager
from farm.protocol import messages as wire
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry
from farm.stores.records import Attempt, Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

NOT_BACK = "its agent did not come back"


class Parts(TypedDict):
    """What `Orphans` are made of."""

    ledger: Ledger
    registry: Registry
    manager: WorkerContextManager
    runner: AttemptRunner
    clock: Clock
    keep_s: float
    wake: Callable[[], None]


class Orphans:
    """What the ledger says runs, and nobody here has in hand.

    Args:
        ledger: Who knows of them.
        registry: Where their contexts are held again.
        manager: Who makes the handles.
        runner: Who goes on with them.
        clock: The time.
        keep_s: A context is held for so long when it is held again.
        wake: Called when a job may be queued again.
    """

    def __init__(self, **parts: Unpack[Parts]) -> None:
        self._ledger = parts["ledger"]
        self._registry = parts["registry"]
        self._manager = parts["manager"]
        self._runner = parts["runner"]
        self._clock = parts["clock"]
        self._keep_s = parts["keep_s"]
        self._wake = parts["wake"]
        self._begun_at = Instant(0.0)
        self._attempts: dict[str, Attempt] = {}
        self._group: asyncio.TaskGroup | None = None
        """Of the life that runs; None between two."""

    def __contains__(self, attempt_id: str) -> bool:
        return attempt_id in self._attempts

    @property
    def begun(self) -> bool:
        """Whether it is known what earlier lives have left."""
        return self._group is not None

    def begin(self, attempts: Iterable[Attempt], group: asyncio.TaskGroup) -> None:
        """Take these for orphans; what is taken up again runs in the group."""
        self._begun_at = self._clock()
        self._attempts = {attempt.attempt_id: attempt for attempt in attempts}
        self._group = group

    def end(self) -> None:
        """Take up nothing more, until the next `begin`."""
        self._group = None

    async def lose_all(self, why: str, *, of: ClientId | None = None) -> None:
        """End all of them, or those of one agent."""
        for attempt in list(self._attempts.values()):
            if of is None or attempt.client_id == of:
                await self._lose(attempt, why)

    async def lose_overdue(self) -> None:
        """End those whose agents have not come back in time."""
        if self._clock() - self._begun_at > self._keep_s:
            await self.lose_all(NOT_BACK)

    async def take_up(
        self, client_id: ClientId, epoch_name: str, entry: wire.Running, send: Send
    ) -> None:
        """Go on with what an agent still has, or tell it that nobody waits for that.

        Raises:
            StoreUnavailableError: If it is to be asked again at the next hello.
        """
        self._alive()
        token = Token(store_epoch=entry.token.store_epoch, counter=entry.token.counter)
        attempt = self._attempts.get(entry.attempt_id)
        known = None if attempt is None else (attempt.client_id, attempt.token, attempt.command_id)
        if attempt is None or known != (client_id, token, entry.command_id):
            await send(wire.Stored(command_id=entry.command_id, refused=True, done=True))
            return
        job = await self._job_of(attempt)
        if self._attempts.pop(entry.attempt_id, None) is None:
            return  # lost meanwhile; what it says next is refused
        try:
            await self._go_on(job, attempt, alive=entry.epoch == epoch_name)
        except StoreUnavailableError:
            self._attempts[entry.attempt_id] = attempt  # until the next hello
            raise

    async def confirm(
        self, live: LiveAttempt, epoch_name: str, entry: wire.Running, send: Send
    ) -> None:
        """An agent is back with an attempt that is in hand; here nobody else can have it."""

    async def expect(self, client_id: ClientId, running: Sequence[wire.Running]) -> None:
        """An agent is about to be let in with these; here nobody has to be asked."""

    async def _go_on(self, job: Job, attempt: Attempt, *, alive: bool) -> None:
        """Look after an attempt from here on; `alive`: in the browser in which it was begun."""
        handle = await self._restore(job, attempt, alive=alive)
        place = await self._place_of_agent(attempt.client_id)
        group = self._alive()
        spec = JobSpec.model_validate(job.spec)
        log.info("attempt.taken_up", job_id=job.job_id, attempt_id=attempt.attempt_id)
        group.create_task(
            self._resume(job, attempt, spec, handle, place), name=f"job {job.job_id} again"
        )
        # The task must be watching before the agent's next frame is read.
        await asyncio.sleep(0)

    def _alive(self) -> asyncio.TaskGroup:
        if self._group is None:
            raise StoreUnavailableError("what ran before is not known yet")
        return self._group

    async def _resume(
        self,
        job: Job,
        attempt: Attempt,
        spec: JobSpec,
        handle: ContextHandle | None,
        place: Place,
    ) -> None:
        try:
            await self._runner.resume(job, attempt, spec, handle, place)
        finally:
            self._wake()

    async def _place_of_agent(self, client_id: ClientId) -> Place:
        clients = (await self._registry.snapshot(now=self._clock())).clients
        types = {client.client_id: client.client_type for client in clients}
        return Place.FLOW if types.get(client_id) is ClientType.CONSOLE else Place.TAB

    async def _restore(self, job: Job, attempt: Attempt, *, alive: bool) -> ContextHandle | None:
        """Hold the context again; None where its browser has gone and only a result is due."""
        if not alive:
            return None
        now = self._clock()
        held = await self._registry.renew(
            attempt.client_id,
            attempt.context_id,
            attempt.token,
            now=now,
            timeout_s=self._keep_s,
        )
        if held is not None:
            return self._manager.handle(held)  # a registry that others share has not forgotten it
        assignment = Assignment(
            namespace=job.namespace,
            client_id=attempt.client_id,
            epoch=attempt.epoch,
            context_id=attempt.context_id,
            task_id=TaskId(job.job_id),
            token=attempt.token,
            since=attempt.started_at,
            renewed_at=now,
            expires_at=Instant(now + self._keep_s),
            dedicated=request_for(
                job.job_id, job.namespace, JobSpec.model_validate(job.spec), Place.TAB
            ).dedicated,
        )
        restored = await self._registry.restore(assignment)
        return self._manager.handle(assignment) if restored else None

    async def _lose(self, attempt: Attempt, why: str) -> None:
        job = await self._job_of(attempt)
        await self._registry.release(attempt.client_id, attempt.context_id, attempt.token)
        if self._attempts.pop(attempt.attempt_id, None) is None:
            return
        await self._runner.lose(job, attempt, why)
        self._wake()

    async def _end(self, attempt: Attempt, why: str) -> None:
        job = await self._job_of(attempt)
        await self._registry.release(attempt.client_id, attempt.context_id, attempt.token)
        await self._runner.lose(job, attempt, why)
        self._wake()

    async def _job_of(self, attempt: Attempt) -> Job:
        return await self._ledger.job_of_attempt(attempt.attempt_id)
