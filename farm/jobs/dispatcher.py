"""Hands queued jobs to workers, and takes up what earlier lives of the farm and agents left."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from farm.clock import Clock
from farm.core.model import Instant
from farm.errors import StoreUnavailableError
from farm.jobs.adopting import orphans_of
from farm.jobs.agents import Agents, GoneRule
from farm.jobs.attempts import AttemptRunner
from farm.jobs.feed import JobFeed
from farm.jobs.leasing import Leases
from farm.jobs.live import LiveAttempts
from farm.jobs.parking import Parking
from farm.jobs.placing import Placing
from farm.jobs.ports import Progress, Waiting
from farm.jobs.taking import Taking
from farm.manager.agent_news import AgentNews
from farm.manager.manager import WorkerContextManager
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger
from farm.stores.records import Attempt

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_SAFETY_S = 5.0
"""The longest the dispatcher goes without looking, should a wake be lost."""
_STORE_PAUSE_S = 1.0


class JobDispatcher:
    """Implements `farm.jobs.ports.Dispatcher`; `run` is its life, and may follow another.

    Where coordinators share their agents each runs jobs on those that are linked to it:
    `coordinator` is its name then, by which links are known, in all its lives. The jobs are those
    it has accepted; or of all, where it shares the ledger, too.
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
        news: AgentNews,
        parking: Parking,
        clock: Clock,
        gone: GoneRule,
        coordinator: str | None = None,
        shared: SharedLedger | None = None,
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._live = live
        self._parking = parking
        self._clock = clock
        self._placing = Placing(
            ledger=ledger,
            taking=Taking(manager, clock, coordinator),
            runner=runner,
            leases=leases,
            clock=clock,
            stir=self._stir,
            generation=registry.generation,
            parking=parking,
            shared=shared,
        )
        self._orphans = orphans_of(
            shared,
            ledger=ledger,
            registry=registry,
            manager=manager,
            runner=runner,
            clock=clock,
            keep_s=gone.after_s,
            wake=self.wake,
        )
        self._ready = asyncio.Event()
        self.agents = Agents(
            ledger=ledger,
            registry=registry,
            live=live,
            orphans=self._orphans,
            feed=feed,
            news=news,
            clock=clock,
            gone=gone,
        )
        """Told of agents that come and go."""
        self._stirred = asyncio.Event()
        self._may_be_due = True
        """Jobs may be queued that were not when the ledger was last read."""
        self._read_at = Instant(0.0)

    # farm.jobs.ports.Dispatcher

    def wake(self) -> None:
        """See `Dispatcher.wake`."""
        self._stir(due=True)

    def look_anew(self) -> None:
        """See `Dispatcher.look_anew`."""
        self._placing.look_anew()
        self.wake()

    def cancel(self, job_id: str) -> None:
        """See `Dispatcher.cancel`."""
        if live := self._live.of_job(job_id):
            live.cancel("cancelled")

    def waiting(self, match_key: str) -> Waiting | None:
        """See `Dispatcher.waiting`."""
        return self._parking.waiting(match_key)

    def unserved(self) -> Mapping[str, Waiting]:
        """See `Dispatcher.unserved`."""
        return self._parking.unserved()

    def progress(self, job_id: str) -> Progress | None:
        """See `Dispatcher.progress`."""
        live = self._live.of_job(job_id)
        return live.progress if live is not None else None

    def close_intake(self) -> None:
        """Start nothing more; what runs goes on."""
        self._placing.close()

    # The loop

    async def ready(self) -> None:
        """Return when agents may come: what earlier lives left is known by then."""
        await self._ready.wait()

    async def run(self) -> None:
        """Place jobs until cancelled; what runs then is left to be taken up again.

        May be run anew when it has ended, as after a restart.
        """
        self._may_be_due = True
        self._placing.begin()
        running = await self._left_running()
        try:
            async with asyncio.TaskGroup() as group:
                self._orphans.begin(running, group)
                self._ready.set()
                try:
                    await self._turns(group)
                finally:
                    self._ready.clear()
                    self._orphans.end()
        finally:
            await self._placing.give_back_unstarted()

    async def _left_running(self) -> Sequence[Attempt]:
        while True:
            try:
                return await self._ledger.running_attempts()
            except StoreUnavailableError as error:
                log.warning("dispatch.skipped", reason=error.detail)
                await asyncio.sleep(_STORE_PAUSE_S)

    async def _turns(self, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                await self._turn(group)
            except StoreUnavailableError as error:
                log.warning("dispatch.skipped", reason=error.detail)
                self._may_be_due = True
                await asyncio.sleep(_STORE_PAUSE_S)

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        """Place what can be placed, then wait for a reason to look again."""
        self._stirred.clear()
        generation = self._registry.generation()
        now = self._clock()
        if self._may_be_due or self._placing.blocked or now - self._read_at >= _SAFETY_S:
            self._may_be_due, self._read_at = False, now
            await self._placing.place_all(group)
        moments = [Instant(self._read_at + _SAFETY_S), *self._placing.moments()]
        timeout_s = max(0.0, min(moments) - self._clock())
        await self._wait(generation if self._placing.blocked else None, timeout_s)

    def _stir(self, *, due: bool) -> None:
        self._may_be_due = self._may_be_due or due
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
