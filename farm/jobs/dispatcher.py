"""Hands queued jobs to workers, and takes up what earlier lives of the farm and agents left."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from farm.clock import Clock
from farm.core import reachability
from farm.core.job_states import AttemptState
from farm.core.model import Assignment, Client, ClientId, Instant
from farm.errors import NotFoundError, StoreUnavailableError
from farm.jobs.adopting import orphans_of
from farm.jobs.attempts import AttemptRunner
from farm.jobs.feed import JobFeed
from farm.jobs.leasing import Leases
from farm.jobs.live import LiveAttempts
from farm.jobs.parking import Parking
from farm.jobs.placing import Placing
from farm.jobs.ports import Progress, Waiting
from farm.jobs.taking import Taking
from farm.manager.agent_news import AgentNews, LeavingReason
from farm.manager.delivery import Send
from farm.manager.manager import WorkerContextManager
from farm.protocol import messages as wire
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger
from farm.stores.records import Attempt

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_SAFETY_S = 5.0
"""The longest the dispatcher goes without looking, should a wake be lost."""
_STORE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRule:
    """When an agent that says nothing is known to have nothing running any more.

    It gives up its work by itself after one window without the farm; see `agent.machine`.
    """

    after_s: float
    postponed_s: float = 0.0
    """By so long it is later where its link is open; see `farm.core.reachability.is_gone`."""


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
        self._feed = feed
        self._news = news
        self._parking = parking
        self._clock = clock
        self._gone = gone
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
        self._stirred = asyncio.Event()
        self._may_be_due = True
        """Jobs may be queued that were not when the ledger was last read."""
        self._read_at = Instant(0.0)
        self._ready = asyncio.Event()

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

    # What the edges tell it

    async def agent_comes(self, client_id: ClientId, running: Sequence[wire.Running]) -> None:
        """An agent is about to be let in that runs these; to be called before it is welcomed.

        Raises:
            StoreUnavailableError: If it must not be let in now.
        """
        await self._orphans.expect(client_id, running)

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
                await self._orphans.take_up(client_id, epoch_name, entry, send)
            else:
                await self._orphans.confirm(live_one, epoch_name, entry, send)
        # An orphan that is not listed is left to `sweep_gone`: this may be another process under
        # the same name, while the one that runs it is on its way.

    async def agent_is_gone(self, client_id: ClientId, why: str) -> None:
        """Take it that nothing of an agent is left: its attempts are lost, its contexts gone."""
        snapshot = await self._registry.snapshot(now=self._clock())
        for client in snapshot.clients:
            if client.client_id == client_id:
                await self._registry.remove(client_id, epoch=client.epoch)
        await self._lose_all_of(client_id, why)

    async def _lose_all_of(self, client_id: ClientId, why: str) -> None:
        # Only now that it is not registered: what is sent later is refused before it goes out.
        for live in self._live.of_client(client_id):
            live.lose(why)
        await self._orphans.lose_all(why, of=client_id)

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
        self._placing.close()

    async def sweep_gone(self) -> None:
        """Give up agents that have said nothing for so long that nothing of theirs can run."""
        now = self._clock()
        for client in (await self._registry.snapshot(now=now)).clients:
            if reachability.is_gone(
                client, now=now, after_s=self._gone.after_s, window_s=self._gone.postponed_s
            ):
                await self._give_up(client)
        if self._ready.is_set():
            await self._orphans.lose_overdue()

    async def _give_up(self, client: Client) -> None:
        # To give up another one before may have taken long, so this one may have been heard of.
        removed = await self._registry.remove(
            client.client_id, epoch=client.epoch, seen_at=client.seen_at
        )
        if removed is not None:
            log.warning("agent.gone", client_id=client.client_id, link_open=client.link is not None)
            await self._lose_all_of(client.client_id, "the agent has gone silent")
            if client.link is not None:  # else it was told when that closed
                self._news.disconnected(client, LeavingReason.TIMEOUT)

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
