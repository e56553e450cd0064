"""Places queued jobs: on whom each may run, and why one can't yet."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from farm.clock import Clock
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.job_states import JobState
from farm.core.model import ClientId, Instant, Namespace, Request
from farm.errors import StoreUnavailableError
from farm.jobs.attempts import AttemptRunner
from farm.jobs.explaining import waiting_for
from farm.jobs.files import JobSpec, Place, falls_back_to, place_of
from farm.jobs.leasing import Leases
from farm.jobs.parking import Parking
from farm.jobs.passes import Pass, State
from farm.jobs.placement import request_for
from farm.jobs.ports import Waiting
from farm.manager.manager import Acquired, Creation, NotAcquired, WorkerContextManager
from farm.protocol.plan import BrowserOptions
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.sharing import SharedLedger
from farm.stores.records import Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 4
"""So many queued jobs are read at a time."""
_REST_S = 1.0
"""Nothing is created for so long on an agent on which that has just failed."""


class Stir(Protocol):
    """Has the queue looked at again; in the ledger too, where jobs may have become due."""

    def __call__(self, *, due: bool) -> None:
        """A job has let its place go."""
        ...


class Placing:
    """The queue, turn by turn, and what is between the queue and the attempts.

    Args:
        ledger: Where the queue is.
        manager: Who lends the contexts.
        runner: Who runs what has been placed.
        leases: Who has which identity.
        clock: The time.
        stir: Called when a job that was placed has ended, or has not begun.
        generation: Grows with every change in the pool after which somebody may take a job.
        parking: Is told of jobs that nobody could take.
        coordinator: See `JobDispatcher`.
        shared: Where others place jobs of the same queue.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        manager: WorkerContextManager,
        runner: AttemptRunner,
        leases: Leases,
        clock: Clock,
        stir: Stir,
        generation: Callable[[], int],
        parking: Parking,
        coordinator: str | None,
        shared: SharedLedger | None = None,
    ) -> None:
        self._ledger = ledger
        self._manager = manager
        self._runner = runner
        self._leases = leases
        self._clock = clock
        self._stir = stir
        self._generation = generation
        self._parking = parking
        self._coordinator = coordinator
        self._shared = shared
        self._closed = False
        self._next_start: Instant | None = None
        self._placed: set[str] = set()
        """The jobs in hand."""
        self._queued: dict[str, Namespace] = {}
        """Of those the ones whose attempt may not have begun, in the order of their turns."""
        self._elsewhere: set[str] = set()
        """What others turned out to place, in this turn."""
        self._waiting: dict[str, Waiting] = {}
        """By match key: jobs that ask for the same wait for the same."""
        self._last: Pass | None = None
        """The last look through the queue that came to its end."""
        self._rules = 0
        """How often they have changed."""
        self._unstarted: dict[str, Acquired | Creation] = {}
        """What was taken for jobs whose tasks have not begun."""
        self._resting: dict[ClientId, Instant] = {}
        """Agents on which nothing is created before the moment."""

    @property
    def blocked(self) -> bool:
        """Jobs are queued that nobody could take."""
        return self._last is not None and bool(self._last.missed)

    def begin(self) -> None:
        """Know of nothing that was placed: a life begins."""
        self._placed, self._queued, self._unstarted = set(), {}, {}

    def look_anew(self) -> None:
        """Believe nothing of what was missed: the rules by which jobs are placed have changed."""
        self._rules += 1

    def close(self) -> None:
        """Place nothing more; nobody waits here any longer."""
        self._closed = True
        self._waiting = {}

    def waiting(self, match_key: str) -> Waiting | None:
        """See `Dispatcher.waiting`."""
        return self._waiting.get(match_key)

    def unserved(self) -> Mapping[str, Waiting]:
        """See `Dispatcher.unserved`."""
        return dict(self._waiting)

    def let_rested(self, now: Instant) -> None:
        """Let agents that have rested be created on again."""
        self._resting = {c: until for c, until in self._resting.items() if until > now}

    def moments(self) -> list[Instant]:
        """Return when time alone lets something be placed: an agent has rested, a job is due."""
        starts = [] if self._next_start is None else [self._next_start]
        return [*self._resting.values(), *starts]

    async def place_all(self, group: asyncio.TaskGroup) -> None:
        """Place jobs until none is left that anybody can take."""
        look = Pass.begin(self._last, self._state(), self._clock())
        self._leases.begin_turn()
        self._elsewhere = set()
        more = True
        while more and not self._closed:
            due = await self._ledger.due(
                now=self._clock(),
                without_keys=frozenset(look.keys),
                without_jobs=frozenset(self._queued) | self._elsewhere,
                served=tuple(self._queued.values()),
                limit=_AT_ONCE,
            )
            self._next_start = due.next_start
            more = False
            for job in due.jobs:
                # One in hand has just been put back into the queue: it stirs when it is let go.
                if not self._closed and job.job_id not in self._placed:
                    more = True
                    if look.is_over(state := self._state()):
                        look = Pass.begin(look, state, self._clock())
                        break
                    await self._place_one(group, job, look)
        self._last = look
        self._waiting = {key: why for key, why in self._waiting.items() if key in look.keys}

    def _state(self) -> State:
        return self._generation(), self._rules

    async def _place_one(self, group: asyncio.TaskGroup, job: Job, look: Pass) -> None:
        if look.turned_away and (state := self._state()) != look.turned_away_at:
            # There may be room now for whose turn was before this one's.
            look.turned_away_at = state
            for other in list(look.turned_away.values()):
                if other.namespace != job.namespace:
                    await self._try(group, other, look)
        if job.match_key not in look.keys:
            await self._try(group, job, look)

    async def _try(self, group: asyncio.TaskGroup, job: Job, look: Pass) -> None:
        spec = look.spec_of(job)
        not_placed = await self._place(group, job, spec)
        if not_placed is None:
            look.placed(job)
        else:
            look.miss(job, spec, not_placed, for_once=bool(self._resting))

    async def _place(
        self, group: asyncio.TaskGroup, job: Job, spec: JobSpec
    ) -> NotAcquired | Waiting | None:
        """Place a job, or say why not."""
        options = await self._leases.take(job, spec)
        if isinstance(options, Waiting):
            self._wait(job, options)
            return options
        begun, place = await self._begin_somewhere(job, spec, options)
        if isinstance(begun, NotAcquired):
            self._leases.give_back(job.job_id)
            self._wait(job, waiting_for(self._request(job, spec, place, options), begun.verdict))
            return begun
        if not await self._claim(job, begun):
            self._elsewhere.add(job.job_id)
            return None
        self._placed.add(job.job_id)
        self._queued[job.job_id] = job.namespace
        self._unstarted[job.job_id] = begun
        group.create_task(self._carry(job, spec, begun, place), name=f"job {job.job_id}")
        return None

    async def _claim(self, job: Job, begun: Acquired | Creation) -> bool:
        """Keep others from placing a job for which there is a place; else give that back.

        Only now, as who has no place for it must not keep it from who has.
        """
        if self._shared is None:
            return True
        claimed = False
        try:
            claimed = await self._shared.claim(job.job_id)
        finally:
            if not claimed:
                self._leases.give_back(job.job_id)
                await self._give_back(begun)
        return claimed

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
        try:
            return await self._manager.begin(
                self._request(job, spec, place, options),
                options=options,
                create_not_on=self._resting,
            )
        except BaseException:
            self._leases.give_back(job.job_id)
            raise

    def _request(self, job: Job, spec: JobSpec, place: Place, options: BrowserOptions) -> Request:
        request = request_for(job.job_id, job.namespace, spec, place, options)
        return replace(request, through=self._coordinator)

    async def _carry(
        self, job: Job, spec: JobSpec, begun: Acquired | Creation, place: Place
    ) -> None:
        del self._unstarted[job.job_id]
        ended = None
        try:
            if isinstance(begun, Creation):
                held = await self._manager.complete(begun)
                if isinstance(held, NotAcquired):
                    self._rest_after(job, begun, held.verdict)
                    return
            else:
                held = begun
            ended = await self._runner.run(
                job, spec, held.handle, place, began=lambda: self._began(job)
            )
        except StoreUnavailableError as error:
            log.warning("dispatch.skipped", job_id=job.job_id, reason=error.detail)
        finally:
            if ended is None:
                await self._give_up_claim(job)
            self._leases.give_back(job.job_id)
            self._placed.discard(job.job_id)
            self._began(job)
            self._stir(due=ended is None or ended.state is JobState.QUEUED)

    def _began(self, job: Job) -> None:
        self._queued.pop(job.job_id, None)

    async def _give_up_claim(self, job: Job) -> None:
        if self._shared is None:
            return
        try:
            await self._shared.give_up_claim(job.job_id)
        except StoreUnavailableError as error:
            # It stays this one's, which places it again; or ends with this one's life.
            log.warning("claim.not_given_up", job_id=job.job_id, reason=error.detail)

    def _rest_after(self, job: Job, creation: Creation, verdict: Verdict) -> None:
        self._wait(job, waiting_for(creation.request, verdict))
        if verdict.reason is Reason.CREATION_FAILED:
            until = Instant(self._clock() + _REST_S)
            self._resting = {**self._resting, **dict.fromkeys(verdict.clients, until)}

    def _wait(self, job: Job, waiting: Waiting) -> None:
        """Say why jobs of this kind wait; they do so since the first time that was said."""
        if self._closed:
            return
        before = self._waiting.get(job.match_key)
        self._parking.parked(job, waiting, before)
        since = self._clock() if before is None else before.since
        self._waiting[job.match_key] = replace(waiting, since=since)

    async def give_back_unstarted(self) -> None:
        """Give back what was taken for tasks that were cancelled before their first step."""
        for begun in self._unstarted.values():
            await self._give_back(begun)

    async def _give_back(self, begun: Acquired | Creation) -> None:
        try:
            if isinstance(begun, Creation):
                await self._manager.abandon(begun)
            else:
                await begun.handle.release()
        except StoreUnavailableError as error:
            log.warning("give_back.skipped", reason=error.detail)  # its time ends it
