"""What a coordinator minds that shares its ledger: which of the attempts in hand are still its own.

The ledger says whose they are, and refuses what anybody else says of them; here that is learned
without having to say anything. An attempt is where its agent's link is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farm.clock import Clock
from farm.core.model import ClientId, Instant, LinkId
from farm.jobs.live import LiveAttempt, LiveAttempts
from farm.manager.delivery import AppNode
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    here: Mapping[ClientId, LinkId]
    """Those this coordinator holds."""
    current: Mapping[ClientId, LinkId | None]
    """Those the registry has, of all agents."""

    def of(self, client_id: ClientId) -> LinkId | None:
        """Return the current link of an agent if it is here."""
        here = self.here.get(client_id)
        return here if self.current.get(client_id) == here else None


class Owning:
    """Compares what is in hand with the ledger, and what agents do with both.

    Args:
        shared: Whose attempts are.
        registry: Which link of an agent is the current one.
        app_node: Which links are here.
        live: The attempts in hand.
        clock: The time that all share.
        gone_after_s: After so long a silence nothing runs on an agent; see `GoneRule`.
        end: Has a link closed that is held here, so that its agent says again what it runs.
    """

    def __init__(
        self,
        *,
        shared: SharedLedger,
        registry: Registry,
        app_node: AppNode,
        live: LiveAttempts,
        clock: Clock,
        gone_after_s: float,
        end: Callable[[ClientId, LinkId], None],
    ) -> None:
        self._shared = shared
        self._registry = registry
        self._app_node = app_node
        self._live = live
        self._clock = clock
        self._gone_after_s = gone_after_s
        self._end = end
        self._since: dict[str, Instant] = {}
        """Attempts of this life's whose agent is linked elsewhere, or that nobody has in hand."""

    async def look(self) -> None:
        """Let go what is another's, stop what is to be cancelled, give up what has moved alone.

        Raises:
            StoreUnavailableError: If that can't be read.
        """
        seen = [(live, live.takes) for live in self._live.sent()]
        standing = await self._shared.standing([live.attempt_id for live, _ in seen])
        links = await self._links()
        odd: dict[str, Standing] = {}
        for live, takes in seen:
            if live.takes == takes and self._live.get(live.attempt_id) is live:
                found = standing.get(live.attempt_id)
                if found is None:
                    if not live.over:
                        live.move()  # another has had it, and has ended it
                elif await self._is_odd(live, found, links):
                    odd[live.attempt_id] = found
        in_hand = {live.attempt_id for live in self._live.all()}
        odd |= {one: found for one, found in standing.items() if found.mine and one not in in_hand}
        await self._give_up(odd, links)

    async def take_back(self, live: LiveAttempt) -> bool:
        """Own an attempt again whose agent is here; False if it is another's, or has ended.

        Raises:
            StoreUnavailableError: If that can't be read, or written.
        """
        is_here = (await self._links()).of(live.client_id) is not None
        return is_here and await self._take_back(live)

    async def _links(self) -> _Links:
        snapshot = await self._registry.snapshot(now=self._clock())
        return _Links(
            here=dict(self._app_node.links()),
            current={client.client_id: client.link for client in snapshot.clients},
        )

    async def _is_odd(self, live: LiveAttempt, found: Standing, links: _Links) -> bool:
        """Do what follows; tell whether the attempt is this one's and its agent is elsewhere."""
        is_here = links.of(live.client_id) is not None
        if not found.mine:
            await self._take_back(live) if is_here else live.move()
            return False
        if found.cancel_requested:
            live.cancel("cancelled")
        if live.client_id not in links.current:
            live.lose("the agent was given up as gone")
            return False
        return not is_here and links.current[live.client_id] is not None

    async def _take_back(self, live: LiveAttempt) -> bool:
        """Its agent has been here last, and was asked about elsewhere for longer than here."""
        attempt = await self._shared.take_over(
            live.attempt_id,
            client_id=live.client_id,
            token=live.token,
            command_id=live.command_id,
        )
        if attempt is None:
            live.move()
            return False
        live.taken_over(attempt)
        return True

    async def _give_up(self, odd: Mapping[str, Standing], links: _Links) -> None:
        """End what an agent has not taken along, and let go what nobody here looks after."""
        now = self._clock()
        self._since = {one: self._since.get(one, now) for one in odd}
        for one in [one for one, since in self._since.items() if now - since > self._gone_after_s]:
            client_id = odd[one].client_id
            if (live := self._live.get(one)) is not None:
                live.lose("the agent has gone to another coordinator")
            elif (link := links.of(client_id)) is not None:
                self._end(client_id, link)  # it goes on, and says so at its next hello alone
                del self._since[one]
            else:
                await self._shared.disown(one)
