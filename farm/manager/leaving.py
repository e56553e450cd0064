"""Agents that are to leave: fenced first, then told; and those that are taken off the register."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import structlog
from prometheus_client import CollectorRegistry, Counter

from farm.clock import Clock
from farm.core.model import Client, ClientId, LinkId
from farm.errors import ClientAbsentError
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
    """It could not be told, or was to be removed: it is out of reach, unless it dials again."""
    UNKNOWN = "unknown"
    """There is no such agent."""


class Leaving:
    """Lets agents go.

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
        for outcome in (Left.DRAINING, Left.DEREGISTERED):
            self._drains.labels(outcome.value)

    async def drain(self, client_id: ClientId, *, by: str, drain_s: float | None = None) -> Left:
        """Let an agent finish what it runs, and leave. When this returns it is given nothing new.

        Asked again it is told again. An agent that can't be told is removed, as by `remove`.

        Raises:
            StoreUnavailableError: If a store can't be asked; it may be fenced and not told.
        """
        if not await self._registry.fence(client_id, by=by, now=self._clock()):
            return Left.UNKNOWN
        client = await self._find(client_id)
        if client is None:
            return Left.UNKNOWN
        deadline_s = self._drain_s if drain_s is None else drain_s
        try:
            await self._app_node.signal(client_id, wire.Drain(deadline_s=deadline_s))
        except ClientAbsentError as error:
            log.error(  # noqa: TRY400 - where in our code it was noticed tells nobody anything
                "drain.not_told", **_identity(client), by=by, reason=error.detail
            )
            await self._remove(client)
            self._drains.labels(Left.DEREGISTERED.value).inc()
            return Left.DEREGISTERED
        log.info("drain.told", **_identity(client), by=by, deadline_s=deadline_s)
        self._news.draining(client, True, "", by)
        self._drains.labels(Left.DRAINING.value).inc()
        return Left.DRAINING

    async def drain_all(
        self, clients: Iterable[Client], *, by: str, drain_s: float | None = None
    ) -> Mapping[ClientId, Left]:
        """Do so with several: all are fenced before the first is told."""
        among = [client.client_id for client in clients]
        for client_id in among:
            await self._registry.fence(client_id, by=by, now=self._clock())
        return {
            client_id: await self.drain(client_id, by=by, drain_s=drain_s) for client_id in among
        }

    async def remove(self, client_id: ClientId, *, by: str) -> Left:
        """Take an agent off the register and end its link; it may dial again.

        What it holds is not taken for dead: it stays held, out of reach, until the agent comes back
        or is known to be gone.

        Raises:
            StoreUnavailableError: If the registry can't be asked.
        """
        # Nothing new can be lent to it between the reading and the removal.
        if not await self._registry.fence(client_id, by=by, now=self._clock()):
            return Left.UNKNOWN
        client = await self._find(client_id)
        if client is None:
            return Left.UNKNOWN
        log.warning("agent.removed", **_identity(client), by=by, holds=len(client.assignments))
        await self._remove(client)
        return Left.DEREGISTERED

    async def _remove(self, client: Client) -> None:
        if client.link is not None and await self._registry.unlink(
            client.client_id, client.link, now=self._clock()
        ):
            self._news.disconnected(client, LeavingReason.DEREGISTERED)
        if not client.assignments:
            await self._registry.remove(client.client_id, epoch=client.epoch)
        if client.link is not None:
            self._end_link(client.client_id, client.link)

    async def _find(self, client_id: ClientId) -> Client | None:
        snapshot = await self._registry.snapshot(now=self._clock())
        return next((one for one in snapshot.clients if one.client_id == client_id), None)


def _identity(client: Client) -> Mapping[str, object]:
    return {
        "client_id": client.client_id,
        "instance": client.instance,
        "deployment": client.deployment,
        "node": client.node,
        "task_queue": client.task_queue,
        "namespaces": list(client.namespaces),
    }
