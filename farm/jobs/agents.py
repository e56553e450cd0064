"""What becomes of attempts as the agents that run them come, go and fall silent."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from farm.clock import Clock
from farm.core import reachability
from farm.core.job_states import AttemptState
from farm.core.model import Assignment, Client, ClientId
from farm.errors import NotFoundError
from farm.jobs.feed import JobFeed
from farm.jobs.live import LiveAttempts
from farm.jobs.orphans import Orphans
from farm.manager.agent_news import AgentNews, LeavingReason
from farm.manager.delivery import Send
from farm.protocol import messages as wire
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRule:
    """When an agent that says nothing is known to have nothing running any more.

    It gives up its work by itself after one window without the farm; see `agent.machine`.
    """

    after_s: float
    postponed_s: float = 0.0
    """By so long it is later where its link is open; see `farm.core.reachability.is_gone`."""


class Agents:
    """Compares what agents have with what is in hand, and gives up what nobody runs any more."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        registry: Registry,
        live: LiveAttempts,
        orphans: Orphans,
        feed: JobFeed,
        news: AgentNews,
        clock: Clock,
        gone: GoneRule,
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._live = live
        self._orphans = orphans
        self._feed = feed
        self._news = news
        self._clock = clock
        self._gone = gone

    async def comes(self, client_id: ClientId, running: Sequence[wire.Running]) -> None:
        """An agent is about to be let in that runs these; to be called before it is welcomed.

        Raises:
            StoreUnavailableError: If it must not be let in now.
        """
        await self._orphans.expect(client_id, running)

    async def is_back(
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

    async def is_gone(self, client_id: ClientId, why: str) -> None:
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

    async def nobody_has(self, attempt_id: str) -> bool:
        """Tell whether an attempt runs of which nothing is known here, as its agent may not say."""
        if self._live.get(attempt_id) is not None or attempt_id in self._orphans:
            return False
        return not await self.attempt_is_over(attempt_id)

    async def attempt_is_over(self, attempt_id: str) -> bool:
        """Tell whether the farm waits for nothing more of this attempt."""
        if self._live.get(attempt_id) is not None or attempt_id in self._orphans:
            return False
        try:
            return (await self._ledger.attempt(attempt_id)).state is not AttemptState.RUNNING
        except NotFoundError:
            return True

    async def sweep_gone(self) -> None:
        """Give up agents that have said nothing for so long that nothing of theirs can run."""
        now = self._clock()
        for client in (await self._registry.snapshot(now=now)).clients:
            if reachability.is_gone(
                client, now=now, after_s=self._gone.after_s, window_s=self._gone.postponed_s
            ):
                await self._give_up(client)
        if self._orphans.begun:
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
