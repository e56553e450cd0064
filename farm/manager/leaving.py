"""Agents that are to leave: fenced first, then told; and those that are taken off the register."""

from collections.abc import Callable, Mapping
from enum import StrEnum

import structlog
from prometheus_client import CollectorRegistry, Counter

from farm.clock import Clock
from farm.core.model import Client, ClientId, LinkId, Namespace
from farm.errors import ClientAbsentError, ForbiddenError
from farm.manager.agent_news import AgentNews, LeavingReason
from farm.manager.delivery import AppNode
from farm.protocol import messages as wire
from farm.stores.ports.registries import Registry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Left(StrEnum):
    """What became of an agent that was to leave; the values are part of the public API."""

    DRAINING = "draining"
    """It was told: it finishes what runs, takes nothing new, says goodbye and ends."""
    DEREGISTERED = "deregistered"
    """It could not be told, or was to be removed, and held nothing: it is known no more."""
    DISCONNECTED = "disconnected"
    """It could not be told, or was to be removed, and holds something: its link has been ended.

    That proves nothing of what it runs. So what it holds stays held, and it stays on the register,
    until it has dialled again, or is known to be gone.
    """
    UNKNOWN = "unknown"
    """There is no such agent."""


class Leaving:
    """Lets agents go. Each call is for one namespace (P16), or for all of the farm with None.

    An agent that does not serve the namespace is unknown to it. One that serves others, too, is
    theirs as well: no one namespace lets it go.

    Args:
        registry: Where they are fenced and forgotten.
        app_node: Who tells them, wherever their links are.
        news: Who tells others.
        end_link: Ends a link that is held here; those held elsewhere are ended there, as their
            agents are not registered on them any more.
        clock: The time.
        drain_s: For how long a draining agent goes on with what it runs, unless told otherwise.
        metrics: Where it is counted.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        app_node: AppNode,
        news: AgentNews,
        end_link: Callable[[ClientId, LinkId], None],
        clock: Clock,
        drain_s: float,
        metrics: CollectorRegistry,
    ) -> None:
        self._registry = registry
        self._app_node = app_node
        self._news = news
        self._end_link = end_link
        self._clock = clock
        self._drain_s = drain_s
        self._drains = Counter(
            "farm_drains",
            "Agents that were asked to leave, by what became of it.",
            ["outcome"],
            registry=metrics,
        )
        for outcome in (Left.DRAINING, Left.DEREGISTERED, Left.DISCONNECTED):
            self._drains.labels(outcome.value)

    async def drain(
        self,
        namespace: Namespace | None,
        client_id: ClientId,
        *,
        by: str,
        drain_s: float | None = None,
    ) -> Left:
        """Let an agent finish what it runs, and leave. When this returns it is given nothing new.

        Asked again it is told again. An agent that can't be told is removed, as by `remove`.

        Raises:
            ForbiddenError: If it serves other namespaces, too.
            StoreUnavailableError: If a store can't be asked; it may be fenced and not told.
        """
        client = await self._find(namespace, client_id)
        if client is None:
            return Left.UNKNOWN
        return await self._drain(client, by=by, drain_s=drain_s)

    async def _drain(self, client: Client, *, by: str, drain_s: float | None) -> Left:
        client_id = client.client_id
        if not await self._registry.fence(client_id, by=by, now=self._clock()):
            return Left.UNKNOWN
        deadline_s = self._drain_s if drain_s is None else drain_s
        try:
            await self._app_node.signal(client_id, wire.Drain(deadline_s=deadline_s))
        except ClientAbsentError as error:
            log.error(  # noqa: TRY400 - where in our code it was noticed tells nobody anything
                "drain.not_told", **_identity(client), by=by, reason=error.detail
            )
            left = await self._remove(client_id)
            if left is not Left.UNKNOWN:
                self._drains.labels(left.value).inc()
            return left
        log.info("drain.told", **_identity(client), by=by, deadline_s=deadline_s)
        self._news.draining(client, True, "", by)
        self._drains.labels(Left.DRAINING.value).inc()
        return Left.DRAINING

    async def drain_all(
        self,
        namespace: Namespace | None,
        wanted: Callable[[Client], bool],
        *,
        by: str,
        drain_s: float | None = None,
    ) -> Mapping[ClientId, Left]:
        """Do so with those that are wanted: all are fenced before the first is told.

        Those that serve other namespaces, too, are passed over.
        """
        snapshot = await self._registry.snapshot(now=self._clock())
        among = [one for one in snapshot.clients if _may(namespace, one) and wanted(one)]
        for client in among:
            await self._registry.fence(client.client_id, by=by, now=self._clock())
        return {
            client.client_id: await self._drain(client, by=by, drain_s=drain_s) for client in among
        }

    async def remove(self, namespace: Namespace | None, client_id: ClientId, *, by: str) -> Left:
        """Take an agent off the register and end its link; it may dial again, and is a fresh one.

        One that holds something is `DISCONNECTED`: P12 lets nobody take that for dead.

        Raises:
            ForbiddenError: If it serves other namespaces, too.
            StoreUnavailableError: If the registry can't be asked.
        """
        if await self._find(namespace, client_id) is None:
            return Left.UNKNOWN
        # Nothing new can be lent to it between the next reading and the removal.
        if not await self._registry.fence(client_id, by=by, now=self._clock()):
            return Left.UNKNOWN
        left = await self._remove(client_id)
        log.warning("agent.removed", client_id=client_id, by=by, outcome=left.value)
        return left

    async def _remove(self, client_id: ClientId) -> Left:
        client = await self._find(None, client_id)
        if client is None:
            return Left.UNKNOWN
        left = Left.DISCONNECTED if client.assignments else Left.DEREGISTERED
        if client.link is not None and await self._registry.unlink(
            client_id, client.link, now=self._clock()
        ):
            self._news.disconnected(client, _REASONS[left])
        if left is Left.DEREGISTERED:
            await self._registry.remove(client_id, epoch=client.epoch)
        if client.link is not None:
            self._end_link(client_id, client.link)
        return left

    async def _find(self, namespace: Namespace | None, client_id: ClientId) -> Client | None:
        snapshot = await self._registry.snapshot(now=self._clock())
        client = next((one for one in snapshot.clients if one.client_id == client_id), None)
        if client is None or _may(namespace, client):
            return client
        if namespace not in client.namespaces:
            return None
        raise ForbiddenError(f"agent {client_id} serves other namespaces, too", client_id=client_id)


_REASONS = {
    Left.DISCONNECTED: LeavingReason.DISCONNECT,
    Left.DEREGISTERED: LeavingReason.DEREGISTERED,
}


def _may(namespace: Namespace | None, client: Client) -> bool:
    return namespace is None or set(client.namespaces) == {namespace}


def _identity(client: Client) -> Mapping[str, object]:
    return {
        "client_id": client.client_id,
        "instance": client.instance,
        "deployment": client.deployment,
        "node": client.node,
        "task_queue": client.task_queue,
        "namespaces": list(client.namespaces),
    }
