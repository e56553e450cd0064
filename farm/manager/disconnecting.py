"""The disconnect policy (P10): what an agent holds is released at once, after a while, or not."""

from dataclasses import dataclass

import structlog

from farm.clock import Clock
from farm.core.model import ClientId, Instant, LinkId, Namespace
from farm.errors import StoreUnavailableError
from farm.manager.agent_news import AgentNews, LeavingReason
from farm.manager.manager import WorkerContextManager
from farm.stores.ports.contexts import ContextRegistry
from farm.stores.ports.routes import Links

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class LeftBehind:
    """Does for the links of a coordinator that died what it does itself when one closes.

    Args:
        registry: Whose links they are.
        disconnects: The policy.
        news: Tells of them.
        clock: The time.
    """

    def __init__(
        self, registry: ContextRegistry, disconnects: "Disconnects", news: AgentNews, clock: Clock
    ) -> None:
        self._registry = registry
        self._disconnects = disconnects
        self._news = news
        self._clock = clock

    async def __call__(self, links: Links) -> None:
        """Note that they have closed.

        Raises:
            StoreUnavailableError: If the registry can't be read; they are silent agents then.
        """
        known = {c.client_id: c for c in (await self._registry.snapshot(now=self._clock())).clients}
        for client_id, link in links:
            log.warning("agent.left_behind", client_id=client_id)
            client = known.get(client_id)
            if client is None or client.link is not None:
                continue
            self._news.disconnected(client, LeavingReason.DISCONNECT)
            for namespace in client.namespaces:
                self._disconnects.note(namespace, client_id, link)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    namespace: Namespace
    client_id: ClientId
    link: LinkId
    due_at: Instant


class Disconnects:
    """Releases what agents hold whose link has closed and that have not come back.

    Args:
        manager: Releases it.
        clock: The time.
        grace_s: How long an agent may take to come back; None leaves everything as it is until the
            agent is given up as gone.
    """

    def __init__(
        self, manager: WorkerContextManager, clock: Clock, *, grace_s: float | None
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._grace_s = grace_s
        self._closed: list[_Closed] = []

    def note(self, namespace: Namespace, client_id: ClientId, link: LinkId) -> None:
        """Note that a link has closed; what its agent holds is released by a sweep."""
        if self._grace_s is not None:
            due_at = Instant(self._clock() + self._grace_s)
            self._closed.append(
                _Closed(namespace=namespace, client_id=client_id, link=link, due_at=due_at)
            )

    async def closed(self, namespace: Namespace, client_id: ClientId, link: LinkId) -> None:
        """Note that a link has closed; without grace release what its agent holds."""
        self.note(namespace, client_id, link)
        if self._grace_s == 0:
            try:
                await self.sweep()
            except StoreUnavailableError as error:
                log.warning("disconnect.not_released", client_id=client_id, reason=error.detail)

    async def sweep(self) -> None:
        """Release what is due. Of an agent that has come back on another link, nothing is.

        Raises:
            StoreUnavailableError: If the store can't be reached; what is left is tried again.
        """
        now = self._clock()
        for one in [one for one in self._closed if one.due_at <= now]:
            await self._manager.on_client_disconnect(one.namespace, one.client_id, link=one.link)
            if one in self._closed:
                self._closed.remove(one)
