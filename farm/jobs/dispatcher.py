"""Hands queued jobs to workers, and takes up what earlier lives of the farm and agents left."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import structlog

from farm.clock import Clock
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.job_states import AttemptState, JobState
from farm.core.model import Assignment, ClientId, ClientType, Instant, TaskId, Token
from farm.errors import NotFoundError, StoreUnavailableError
from farm.jobs.attempts import AttemptRunner
from farm.jobs.feed import JobFeed
from farm.jobs.files import JobSpec, Place, falls_back_to, place_of
from farm.jobs.leasing import Leases
from farm.jobs.live import LiveAttempts
from farm.jobs.placement import request_for
from farm.jobs.ports import Progress, Waiting
from farm.manager.delivery import Send
from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, Creation, NotAcquired, WorkerContextManager
from farm.protocol import messages as wire
from farm.protocol.plan import BrowserOptions
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry
from farm.stores.records import Attempt, Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 4
"""So many queued jobs are read at a time."""
_SAFETY_S = 5.0
"""The longest the dispatcher goes without looking, should a wake be lost."""
_STORE_PAUSE_S = 1.0
_REST_S = 1.0
"""Nothing is created for so long on an agent on which that has just failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRule:
    """When an agent that says nothing is known to have nothing running any more.

    It gives up its work by itself after one window without the farm; see `agent.machine`.
    """

    after_s: float


class JobDispatcher:
    """Implements `farm.jobs.ports.Dispatcher`; `run` is its life, and may follow another.

    Where coordinators share their agents each runs the jobs it has accepted, on those that are
    linked to it: `coordinator` is its name then, by which links are known, in all its lives.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        registry: Registry,
        manager: WorkerContextManager,
        runner: AttemptRunner,
        live: LiveAttempts,
        leases: Leases,
        feed: JobFeed,
        clock: Clock,
        gone: GoneRule,
        coordinator: str | None = None,
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._manager = manager
        self._runner = runner
        self._live = live
        self._leases = leases
        self._feed = feed
        self._clock = clock
        self._gone = gone
        self._coordinator = coordinator
        self._stirred = asyncio.Event()
        self._may_be_due = True
        """Jobs may be queued that were not when the ledger was last read."""
        self._blocked = False
        """Jobs are queued that nobody could take."""
        self._next_start: Instant | None = None
        self._read_at = Instant(0.0)
        self._placing: set[str] = set()
        self._waiting: dict[str, Waiting] = {}
        """By match key: jobs that ask for the same wait for the same."""
        self._missed: dict[str, JobSpec] = {}
        """The jobs that nobody could take when they were last looked at."""
        self._orphans: dict[str, Attempt] = {}
        self._unstarted: dict[str, Acquired | Creation] = {}
        """What was taken for jobs whose tasks have not begun."""
        self._resting: dict[ClientId, Instant] = {}
        """Agents on which nothing is created before the moment."""
        self._ready = asyncio.Event()
        self._started_at = Instant(0.0)
        self._closed_intake = False
        self._group: asyncio.TaskGroup | None = None

    # farm.jobs.ports.Dispatcher

    def wake(self) -> None:
        """See `Dispatcher.wake`."""
        self._may_be_due = True
        self._stirred.set()

    def cancel(self, job_id: str) -> None:
        """See `Dispatcher.cancel`."""
        if live := self._live.of_job(job_id):
            live.cancel("cancelled")

    def waiting(self, match_key: str) -> Waiting | None:
        """See `Dispatcher.waiting`."""
        return self._waiting.get(match_key)

    def progress(self, job_id: str) -> Progress | None:
        """See `Dispatcher.progress`."""
        live = self._live.of_job(job_id)
        return live.progress if live is not None else None

    # What the edges tell it

    async def agent_is_back(
        self,
        client_id: ClientId,
        epoch_name: str,
        running: Sequence[wire.Running],
        send: Send,
    ) -> None:
        """Compare what an agent says it still has with what the farm believes it has.

        Called at each `hello`, in the same turn of the loop in which its link becomes the one in
        use: what was sent before and is not listed never arrived. `send` answers it.
        """
        listed = {entry.attempt_id for entry in running}
        for live in self._live.of_client(client_id):
            if live.sent and live.attempt_id not in listed:
                live.lose("the agent came back without this attempt")
            elif live.sent and live.cancelled.done():
                await send(live.order_to_stop())  # the first may have been lost with the link
        for entry in running:
            live_one = self._live.get(entry.attempt_id)
            if live_one is None or live_one.client_id != client_id:
                await self._take_up(client_id, epoch_name, entry, send)
        # An orphan that is not listed is left to `sweep_gone`: this may be another process under
        # the same name, while the one that runs it is on its way.

    async def agent_is_gone(self, client_id: ClientId, why: str) -> None:
        """Take it that nothing of an agent is left: its attempts are lost, its contexts gone."""
        snapshot = await self._registry.snapshot(now=self._clock())
        for client in snapshot.clients:
            if client.client_id == client_id:
                await self._registry.remove(client_id, epoch=client.epoch)
        for live in self._live.of_client(client_id):
            live.lose(why)
        for attempt in [a for a in self._orphans.values() if a.client_id == client_id]:
            await self._lose_orphan(attempt, why)

    async def link_closed(self, client_id: ClientId) -> None:
        """Say in the history of its jobs that an agent has lost its connection."""
        for live in self._live.of_client(client_id):
            await self._ledger.add_event(
                live.job_id,
                "agent_link_closed",
                {"agent": client_id},
                attempt_id=live.attempt_id,
                now=self._clock(),
            )
            self._feed.publish(live.job_id)

    def context_is_gone(self, ended: Sequence[Assignment]) -> None:
        """A report no longer has these contexts: what ran on them is dead."""
        for assignment in ended:
            live = self._live.of_job(assignment.task_id)
            if live is not None and live.token == assignment.token:
                live.lose("the tab is gone from its agent's report")

    async def attempt_is_over(self, attempt_id: str) -> bool:
        """Tell whether the farm waits for nothing more of this attempt."""
        if self._live.get(attempt_id) is not None or attempt_id in self._orphans:
            return False
        try:
            return (await self._ledger.attempt(attempt_id)).state is not AttemptState.RUNNING
        except NotFoundError:
            return True

    def close_intake(self) -> None:
        """Start nothing more; what runs goes on."""
        self._closed_intake = True

    async def sweep_gone(self) -> None:
        """Give up agents that have said nothing for so long that nothing of theirs can run."""
        now = self._clock()
        for client in (await self._registry.snapshot(now=now)).clients:
            if now - client.seen_at > self._gone.after_s:
                await self._sweep(client.client_id)
        if self._ready.is_set() and now - self._started_at > self._gone.after_s:
            for attempt in list(self._orphans.values()):
                await self._lose_orphan(attempt, "its agent did not come back")

    async def _sweep(self, client_id: ClientId) -> None:
        # Looked at again: to give up another one before may have taken long.
        now = self._clock()
        for client in (await self._registry.snapshot(now=now)).clients:
            if client.client_id == client_id and now - client.seen_at > self._gone.after_s:
                log.warning("agent.gone", client_id=client_id)
                await self.agent_is_gone(client_id, "the agent has gone silent")

    # The loop

    async def ready(self) -> None:
        """Return when agents may come: what earlier lives left is known by then."""
        await self._ready.wait()

    async def run(self) -> None:
        """Place jobs until cancelled; what runs then is left to be taken up again.

        May be run anew when it has ended, as after a restart.
        """
        self._started_at = self._clock()
        self._placing, self._unstarted, self._may_be_due = set(), {}, True
        self._orphans = {a.attempt_id: a for a in await self._ledger.running_attempts()}
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._ready.set()
                try:
                    await self._turns(group)
                finally:
                    self._ready.clear()
        finally:
            # A task that is cancelled before its first step gives nothing back by itself.
            for begun in self._unstarted.values():
                await self._give_back(begun)

    async def _turns(self, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                await self._turn(group)
            except StoreUnavailableError as error:
                log.warning("dispatch.skipped", reason=error.detail)
                self._may_be_due = True
                await asyncio.sleep(_STORE_PAUSE_S)

    async def _give_back(self, begun: Acquired | Creation) -> None:
        try:
            if isinstance(begun, Creation):
                await self._manager.abandon(begun)
            else:
                await begun.handle.release()
        except StoreUnavailableError as error:
            log.warning("give_back.skipped", reason=error.detail)  # its time ends it

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        """Place what can be placed, then wait for a reason to look again."""
        self._stirred.clear()
        generation = self._registry.generation()
        now = self._clock()
        self._resting = {c: until for c, until in self._resting.items() if until > now}
        if self._may_be_due or self._blocked or now - self._read_at >= _SAFETY_S:
            self._may_be_due, self._read_at = False, now
            await self._place_all(group)
        moments = [Instant(self._read_at + _SAFETY_S), *self._resting.values()]
        if self._next_start is not None:
            moments.append(self._next_start)
        timeout_s = max(0.0, min(moments) - self._clock())
        await self._wait(generation if self._blocked else None, timeout_s)

    async def _place_all(self, group: asyncio.TaskGroup) -> None:
        """Place jobs until none is left that anybody can take."""
        keys: set[str] = set()
        missed: dict[str, JobSpec] = {}
        self._leases.begin_turn()
        more = True
        while more and not self._closed_intake:
            due = await self._ledger.due(
                now=self._clock(),
                without_keys=frozenset(keys),
                without_jobs=frozenset(self._placing),
                limit=_AT_ONCE,
            )
            for job in due.jobs:
                if self._closed_intake or job.match_key in keys:
                    continue
                spec = self._missed.get(job.job_id) or JobSpec.model_validate(job.spec)
                if not await self._place(group, job, spec):
                    keys.add(job.match_key)
                    missed[job.job_id] = spec
            self._next_start = due.next_start
            more = len(due.jobs) == _AT_ONCE
        self._missed = missed
        self._blocked = bool(keys)
        self._waiting = {key: why for key, why in self._waiting.items() if key in keys}

    async def _place(self, group: asyncio.TaskGroup, job: Job, spec: JobSpec) -> bool:
        options = await self._leases.take(job, spec)
        if isinstance(options, Waiting):
            self._waiting[job.match_key] = options
            return False
        begun, place = await self._begin_somewhere(job, spec, options)
        if isinstance(begun, NotAcquired):
            self._leases.give_back(job.job_id)
            self._explain(job, begun.verdict)
            return False
        self._placing.add(job.job_id)
        self._unstarted[job.job_id] = begun
        group.create_task(self._carry(job, spec, begun, place), name=f"job {job.job_id}")
        return True

    async def _begin_somewhere(
        self, job: Job, spec: JobSpec, options: BrowserOptions
    ) -> tuple[Acquired | NotAcquired | Creation, Place]:
        """Begin where the job is to run; or where else it may, if nobody is there for that."""
        place = place_of(spec, job.namespace, job.match_key)
        begun = await self._begin(job, spec, place, options)
        other = falls_back_to(spec, place)
        if other is None or not isinstance(begun, NotAcquired) or begun.verdict.somebody:
            return begun, place
        elsewhere = await self._begin(job, spec, other, options)
        nobody = isinstance(elsewhere, NotAcquired) and not elsewhere.verdict.somebody
        return (begun, place) if nobody else (elsewhere, other)

    async def _begin(
        self, job: Job, spec: JobSpec, place: Place, options: BrowserOptions
    ) -> Acquired | NotAcquired | Creation:
        request = request_for(job.job_id, job.namespace, spec, place, options)
        try:
            return await self._manager.begin(
                replace(request, through=self._coordinator),
                options=options,
                create_not_on=self._resting,
            )
        except BaseException:
            self._leases.give_back(job.job_id)
            raise

    async def _carry(
        self, job: Job, spec: JobSpec, begun: Acquired | Creation, place: Place
    ) -> None:
        del self._unstarted[job.job_id]
        ended = None
        try:
            outcome = await self._manager.complete(begun) if isinstance(begun, Creation) else begun
            if isinstance(outcome, NotAcquired):
                self._explain(job, outcome.verdict)
                if outcome.verdict.reason is Reason.CREATION_FAILED:
                    self._rest(outcome.verdict.clients)
                return
            ended = await self._runner.run(job, spec, outcome.handle, place)
        except StoreUnavailableError as error:
            log.warning("dispatch.skipped", job_id=job.job_id, reason=error.detail)
        finally:
            self._leases.give_back(job.job_id)
            self._placing.discard(job.job_id)
            if ended is None or ended.state is JobState.QUEUED:
                self._may_be_due = True
            self._stirred.set()

    async def _wait(self, generation: int | None, timeout_s: float) -> None:
        """Wait for a wake, for a change of the registry where `generation` is given, or time.

        When it was for time, the ledger is to be read: a job may be due, or a wake have been lost.
        """
        try:
            async with asyncio.timeout(timeout_s):
                if generation is None:
                    await self._stirred.wait()
                else:
                    await self._first_of(generation)
        except TimeoutError:
            self._may_be_due = True

    async def _first_of(self, generation: int) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                changed = group.create_task(
                    self._registry.changed_since(generation), name="changed"
                )
                stirred = group.create_task(self._stirred.wait(), name="stirred")
                await asyncio.wait({changed, stirred}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                stirred.cancel()
        except ExceptionGroup as failed:
            unavailable, others = failed.split(StoreUnavailableError)
            if unavailable is None or others is not None:
                raise
            raise StoreUnavailableError("the registry can't be waited on") from failed

    def _rest(self, clients: Iterable[ClientId]) -> None:
        until = Instant(self._clock() + _REST_S)
        self._resting = {**self._resting, **dict.fromkeys(clients, until)}

    def _explain(self, job: Job, verdict: Verdict) -> None:
        reasons = sorted({reason.value for reason in verdict.clients.values()})
        self._waiting[job.match_key] = Waiting(
            reason=verdict.reason.value if verdict.reason is not None else "no_agent",
            remedy=verdict.remedy,
            detail=f"{len(verdict.clients)} agents looked at: {', '.join(reasons) or 'none'}",
        )

    # Attempts of earlier lives

    async def _take_up(
        self, client_id: ClientId, epoch_name: str, entry: wire.Running, send: Send
    ) -> None:
        if not self._ready.is_set():
            raise StoreUnavailableError("what ran before is not known yet")
        token = Token(store_epoch=entry.token.store_epoch, counter=entry.token.counter)
        attempt = self._orphans.get(entry.attempt_id)
        known = None if attempt is None else (attempt.client_id, attempt.token, attempt.command_id)
        if attempt is None or known != (client_id, token, entry.command_id) or self._group is None:
            await send(wire.Stored(command_id=entry.command_id, refused=True, done=True))
            return
        job = await self._job_of(attempt)
        if self._orphans.pop(entry.attempt_id, None) is None:
            return  # lost meanwhile; what it says next is refused
        try:
            handle = await self._restore(job, attempt, alive=entry.epoch == epoch_name)
            place = await self._place_of_agent(client_id)
        except StoreUnavailableError:
            self._orphans[entry.attempt_id] = attempt  # until the next hello
            raise
        spec = JobSpec.model_validate(job.spec)
        log.info("attempt.taken_up", job_id=job.job_id, attempt_id=attempt.attempt_id)
        self._group.create_task(
            self._resume(job, attempt, spec, handle, place), name=f"job {job.job_id} again"
        )
        # The task must be watching before the agent's next frame is read.
        await asyncio.sleep(0)

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
            self.wake()

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
            timeout_s=self._gone.after_s,
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
            expires_at=Instant(now + self._gone.after_s),
            dedicated=request_for(
                job.job_id, job.namespace, JobSpec.model_validate(job.spec), Place.TAB
            ).dedicated,
        )
        restored = await self._registry.restore(assignment)
        return self._manager.handle(assignment) if restored else None

    async def _lose_orphan(self, attempt: Attempt, why: str) -> None:
        job = await self._job_of(attempt)
        await self._registry.release(attempt.client_id, attempt.context_id, attempt.token)
        if self._orphans.pop(attempt.attempt_id, None) is None:
            return
        await self._runner.lose(job, attempt, why)
        self.wake()

    async def _job_of(self, attempt: Attempt) -> Job:
        return await self._ledger.job_of_attempt(attempt.attempt_id)
