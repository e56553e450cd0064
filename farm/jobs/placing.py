"""Places queued jobs, turn by turn, and has run what is placed."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from farm.clock import Clock
from farm.core.job_states import JobState
from farm.core.model import Instant, Namespace
from farm.errors import StoreUnavailableError
from farm.jobs.attempts import AttemptRunner
from farm.jobs.explaining import waiting_for
from farm.jobs.files import JobSpec, Place
from farm.jobs.leasing import Leases
from farm.jobs.parking import Parking
from farm.jobs.passes import Pass, State
from farm.jobs.ports import Waiting
from farm.jobs.taking import Taken, Taking
from farm.manager.manager import Creation, NotAcquired
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.sharing import SharedLedger
from farm.stores.records import Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 4
"""So many queued jobs are read at a time."""
_CLAIMS_EVERY_S = 5.0
"""So often it is seen to that nothing is claimed but what is being placed."""


class Stir(Protocol):
    """Has the queue looked at again; in the ledger too, where jobs may have become due."""

    def __call__(self, *, due: bool) -> None:
        """A job has let its place go."""
        ...


class Placing:
    """The queue, turn by turn, and what is between the queue and the attempts.

    Args:
        ledger: Where the queue is.
        taking: Takes the contexts.
        runner: Who runs what has been placed.
        leases: Who has which identity.
        clock: The time.
        stir: Called when a job that was placed has ended, or has not begun.
        generation: Grows with every change in the pool after which somebody may take a job.
        parking: Is told of jobs that nobody could take.
        shared: Where others place jobs of the same queue.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        taking: Taking,
        runner: AttemptRunner,
        leases: Leases,
        clock: Clock,
        stir: Stir,
        generation: Callable[[], int],
        parking: Parking,
        shared: SharedLedger | None = None,
    ) -> None:
        self._ledger = ledger
        self._taking = taking
        self._runner = runner
        self._leases = leases
        self._clock = clock
        self._stir = stir
        self._generation = generation
        self._parking = parking
        self._shared = shared
        self._closed = False
        self._next_start: Instant | None = None
        self._placed: set[str] = set()
        """The jobs in hand."""
        self._queued: dict[str, Namespace] = {}
        """Of those the ones whose attempt may not have begun, in the order of their turns."""
        self._claims_kept_at = Instant(0.0)
        self._elsewhere: set[str] = set()
        """What others turned out to place, in this turn."""
        self._last: Pass | None = None
        """The last look through the queue that came to its end."""
        self._changes = 0
        """Of what the registry says nothing of, or not yet."""
        self._unstarted: dict[str, Taken] = {}
        """What was taken for jobs whose tasks have not begun."""

    @property
    def blocked(self) -> bool:
        """Jobs are queued that nobody could take."""
        return self._last is not None and bool(self._last.missed)

    def begin(self) -> None:
        """Know of nothing that was placed: a life begins."""
        self._placed, self._queued, self._unstarted = set(), {}, {}

    def look_anew(self) -> None:
        """Believe nothing of what was missed: something has changed."""
        self._changes += 1

    def close(self) -> None:
        """Place nothing more; nobody waits here any longer."""
        self._closed = True
        self._parking.close()

    def moments(self) -> list[Instant]:
        """Return when time alone lets something be placed: an agent has rested, a job is due."""
        starts = [] if self._next_start is None else [self._next_start]
        return [*self._taking.resting.values(), *starts]

    async def place_all(self, group: asyncio.TaskGroup) -> None:
        """Place jobs until none is left that anybody can take."""
        await self._keep_claims()
        self._taking.let_rested(self._clock())
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
        self._parking.keep(look.keys)

    def _state(self) -> State:
        return self._generation(), self._changes

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
            look.miss(job, spec, not_placed, for_once=bool(self._taking.resting))

    async def _place(
        self, group: asyncio.TaskGroup, job: Job, spec: JobSpec
    ) -> NotAcquired | Waiting | None:
        """Place a job, or say why not."""
        options = await self._leases.take(job, spec)
        if isinstance(options, Waiting):
            self._parking.park(job, options)
            return options
        begun = None
        try:
            begun, asked, place = await self._taking.begin(job, spec, options)
        finally:
            if begun is None or isinstance(begun, NotAcquired):
                self._leases.give_back(job.job_id)
        if isinstance(begun, NotAcquired):
            self._parking.park(job, waiting_for(asked, begun.verdict))
            return begun
        if not await self._claim(job, begun):
            self._elsewhere.add(job.job_id)
            return None
        self._placed.add(job.job_id)
        self._queued[job.job_id] = job.namespace
        self._unstarted[job.job_id] = begun
        group.create_task(self._carry(job, spec, begun, place), name=f"job {job.job_id}")
        return None

    async def _claim(self, job: Job, begun: Taken) -> bool:
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
                await self._taking.give_back(begun)
        return claimed

    async def _keep_claims(self) -> None:
        """Let others place what is claimed and not in hand: it may be only they who can."""
        now = self._clock()
        if self._shared is not None and now - self._claims_kept_at >= _CLAIMS_EVERY_S:
            await self._shared.keep_claims(frozenset(self._queued))
            self._claims_kept_at = now

    async def _carry(self, job: Job, spec: JobSpec, begun: Taken, place: Place) -> None:
        del self._unstarted[job.job_id]
        ended = None
        try:
            held = await self._taking.complete(begun)
            if isinstance(held, NotAcquired):
                if isinstance(begun, Creation):
                    self._parking.park(job, waiting_for(begun.request, held.verdict))
                return
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
            self.look_anew()  # before a wake may have come from the registry
            self._stir(due=ended is None or ended.state is JobState.QUEUED)

    def _began(self, job: Job) -> None:
        self._queued.pop(job.job_id, None)

    async def _give_up_claim(self, job: Job) -> None:
        if self._shared is None:
            return
        try:
            await self._shared.give_up_claim(job.job_id)
        except StoreUnavailableError as error:
            # It is seen to later that it is not kept; or it ends with this one's life.
            log.warning("claim.not_given_up", job_id=job.job_id, reason=error.detail)

    async def give_back_unstarted(self) -> None:
        """Give back what was taken for tasks that were cancelled before their first step."""
        for begun in self._unstarted.values():
            await self._taking.give_back(begun)
