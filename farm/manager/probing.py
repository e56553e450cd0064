"""Asks the agents whose links this coordinator holds, and publishes who does not answer.

`farm.core.reachability` decides; this asks, and tells the registry and the log.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog
from prometheus_client import CollectorRegistry, Counter

from farm.clock import Clock
from farm.core import reachability
from farm.core.model import ClientId, LinkId
from farm.core.pools import Exclusion
from farm.core.reachability import Line
from farm.errors import ClientAbsentError
from farm.manager.delivery import Send
from farm.manager.loops import every
from farm.protocol import messages as wire
from farm.stores.ports.registries import Registry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Tell = Callable[[ClientId, Exclusion | None], None]
"""(agent, why it is kept out from now on) -> None."""

_NONCE = "probe-"
"""So begin the nonces of questions. Those of heartbeats are numbers, which their agent counts."""

_PUBLISHED = frozenset({Exclusion.REACHABILITY_LOST})
"""Probation is noted where an agent registers, in the same step."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Held:
    """A link that is held here."""

    link: LinkId
    send: Send
    line: Line = field(default_factory=Line)
    mute: bool = False
    """It could not be asked, through no fault of its agent's."""


class Prober:
    """Keeps agents from being chosen that do not answer; implements `LinkWatcher`.

    Args:
        registry: Where it is published.
        clock: The time of the registry.
        coordinator: Whose verdicts they are.
        window_s: The window of the heartbeats, from which all other times follow.
        metrics: Where the outcomes are counted.
        end: Has a link closed that is held here, so that its agent dials again.
        tell: Hears of each agent that is found otherwise than before.
    """

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        *,
        coordinator: str,
        window_s: float,
        metrics: CollectorRegistry,
        end: Callable[[ClientId, LinkId], None],
        tell: Tell = lambda *_: None,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._coordinator = coordinator
        self._window_s = window_s
        self._end = end
        self._tell = tell
        self._outcomes = Counter(
            "farm_probes",
            "Questions to the runtimes of agents, by what has come of them.",
            ["outcome"],
            registry=metrics,
        )
        for outcome in ("answered", "not_answered", "could_not_ask"):
            self._outcomes.labels(outcome)
        self._held: dict[ClientId, _Held] = {}
        self._excluded: dict[ClientId, Exclusion] = {}
        self._number = 0
        """Of the round."""
        self._wanted = self._done = 0
        self._publishing = asyncio.Lock()

    # farm.manager.delivery.LinkWatcher

    async def opened(self, client_id: ClientId, link: LinkId, send: Send) -> None:
        """See `LinkWatcher.opened`: its agent, registered in probation, is asked at once."""
        known = self._held.get(client_id)
        if known is not None and known.link == link:
            return
        held = self._held[client_id] = _Held(link=link, send=send)
        self._judge(client_id)
        await self._ask(client_id, held)

    async def answered(self, client_id: ClientId, link: LinkId, nonce: str) -> None:
        """See `LinkWatcher.answered`: whom it proves may be chosen at once."""
        held, number = self._held.get(client_id), nonce.removeprefix(_NONCE)
        if held is None or held.link != link or number == nonce or not number.isdecimal():
            return
        line = reachability.answered(held.line, int(number))
        if line is None:
            return
        proves, was = not held.line.proven, self._excluded.get(client_id)
        held.line = line
        self._outcomes.labels("answered").inc()
        self._judge(client_id)
        if proves:
            await self._registry.proven(client_id, link)
        if was is Exclusion.REACHABILITY_LOST and client_id not in self._excluded:
            await self._publish()

    async def closed(self, client_id: ClientId, link: LinkId) -> None:
        """See `LinkWatcher.closed`: of its agent nothing is said here any more."""
        held = self._held.get(client_id)
        if held is None or held.link != link:
            return
        del self._held[client_id]
        if self._excluded.pop(client_id, None) is Exclusion.REACHABILITY_LOST:
            await self._publish()

    # The rounds

    async def run(self) -> None:
        """Go round, for ever."""
        await every(reachability.round_s(self._window_s), self.round, name="probe")

    async def round(self) -> None:
        """Judge what the last questions have come to, publish that, and ask anew.

        Raises:
            StoreUnavailableError: If it can't be published; the agents were asked all the same.
        """
        before, self._number = self._number, self._number + 1
        for client_id, held in self._held.items():
            if before in held.line.asked:
                self._outcomes.labels("not_answered").inc()
            self._judge(client_id)
        for client_id, held in list(self._held.items()):
            await self._ask(client_id, held)
        await self._publish()

    async def end_unregistered(self) -> None:
        """End the links whose agent the registry does not know under them; it dials again.

        An agent that was given up, or let in on another link, must not go on believing that it is
        registered here.

        Raises:
            StoreUnavailableError: If the registry can't be read.
        """
        here = list(self._held.items())  # each was registered before it came here
        snapshot = await self._registry.snapshot(now=self._clock())
        links = {client.client_id: client.link for client in snapshot.clients}
        for client_id, held in here:
            if links.get(client_id) != held.link:
                self._end(client_id, held.link)

    async def _ask(self, client_id: ClientId, held: _Held) -> None:
        number = self._number
        try:
            await held.send(wire.Ping(nonce=f"{_NONCE}{number}"))
        except ClientAbsentError as error:
            self._outcomes.labels("could_not_ask").inc()
            if not held.mute:
                log.warning("probe.could_not_ask", client_id=client_id, reason=error.detail)
            held.mute = True
            return
        held.line = reachability.asked(held.line, number)
        if held.mute:
            log.info("probe.asks_again", client_id=client_id)
        held.mute = False

    def _judge(self, client_id: ClientId) -> bool:
        """Bring what is to be published up to date; log and return whether it has changed."""
        before = self._excluded.get(client_id)
        kind = reachability.exclusion(self._held[client_id].line, self._number)
        if kind is before:
            return False
        if kind is None:
            del self._excluded[client_id]
        else:
            self._excluded[client_id] = kind
        if kind is Exclusion.REACHABILITY_LOST:
            log.warning(
                "agent.unreachable", client_id=client_id, unanswered=reachability.LOST_AFTER
            )
        elif before is not None:
            log.info("agent.reachable", client_id=client_id, was=before.value)
        self._tell(client_id, kind)
        return True

    async def _publish(self) -> None:
        """Publish what there is to be said, once for all who come while another is at it."""
        self._wanted += 1
        mine = self._wanted
        async with self._publishing:
            if self._done >= mine:
                return
            covered = self._wanted
            await self._registry.publish_exclusions(
                self._coordinator,
                {id: kind for id, kind in self._excluded.items() if kind in _PUBLISHED},
                now=self._clock(),
                lease_s=self._window_s,
            )
            self._done = covered

    def excluded(self) -> Mapping[ClientId, Exclusion]:
        """Return what was last found of the agents whose links are held here."""
        return dict(self._excluded)
