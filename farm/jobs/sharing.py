"""What a coordinator minds that shares its agents with others: whose attempts an agent runs.

Each coordinator runs the jobs it has accepted, on agents that are linked to it. An agent may come
to another one only when it runs nothing of the first any more; so that one knows what is lost.
"""

from collections.abc import Sequence

from farm.clock import Clock
from farm.core.model import ClientId, Instant, is_link_of
from farm.errors import NotFoundError
from farm.jobs.live import LiveAttempts
from farm.protocol import messages as wire
from farm.stores.ports.contexts import ContextRegistry
from farm.stores.ports.ledger import Ledger


class Sharing:
    """The rules by which agents move between coordinators.

    Args:
        coordinator: This one's name, in all its lives; its links are named after it.
        ledger: Its own: an attempt that is not in it is another's.
        registry: The one all share.
        live: The attempts in hand.
        clock: The time that all share.
        gone_after_s: After so long a silence nothing runs on an agent; see `GoneRule`.
    """

    def __init__(
        self,
        *,
        coordinator: str,
        ledger: Ledger,
        registry: ContextRegistry,
        live: LiveAttempts,
        clock: Clock,
        gone_after_s: float,
    ) -> None:
        self._coordinator = coordinator
        self._ledger = ledger
        self._registry = registry
        self._live = live
        self._clock = clock
        self._gone_after_s = gone_after_s
        self._since = Instant(0.0)

    def begin(self) -> None:
        """Take note that what the registry knows may be no older than now."""
        self._since = self._clock()

    async def keeps_out(self, client_id: ClientId, running: Sequence[wire.Running]) -> bool:
        """Tell whether an agent may still run what another coordinator has given it.

        It must not be let in then: the other one waits for it, and nobody else knows what its
        answers mean. When it has been silent for so long that it has given everything up, it may
        come, and is told that nobody waits.
        """
        if not await self._any_of_others(running):
            return False
        now = self._clock()
        seen_at = {
            client.client_id: client.seen_at
            for client in (await self._registry.snapshot(now=now)).clients
        }
        return now - seen_at.get(client_id, self._since) <= self._gone_after_s

    async def _any_of_others(self, running: Sequence[wire.Running]) -> bool:
        for entry in running:
            try:
                await self._ledger.attempt(entry.attempt_id)
            except NotFoundError:
                return True
        return False

    async def lose_what_moved(self) -> None:
        """Give up the attempts of agents that another coordinator has let in, or has given up.

        It does the one only to agents that run nothing of ours, and the other to those that have
        been silent for long.
        """
        sent = self._live.sent()  # before the reading, which so is of a later moment
        now = self._clock()
        links = {c.client_id: c.link for c in (await self._registry.snapshot(now=now)).clients}
        for live in sent:
            link = links.get(live.client_id)
            if link is not None and not is_link_of(self._coordinator, link):
                live.lose("the agent has gone to another coordinator")
            elif live.client_id not in links and now - self._since > self._gone_after_s:
                live.lose("the agent was given up as gone")
