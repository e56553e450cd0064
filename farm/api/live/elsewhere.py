"""Viewers who come to one coordinator for a tab whose agent is linked to another.

Where they come it is seen whether they may look (P16, P17). The other one serves them, as those
who come to it: so there is one channel to the agent, one list of viewers and one who is in control.
"""

from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict

from farm.api.duplex import DialledSocket, carry
from farm.api.live.links import Grant
from farm.api.live.places import Place, Places
from farm.api.live.session import MAX_FRAME_BYTES, Sessions
from farm.core.model import ClientId, Instant, Namespace
from farm.manager.bridge import Bridge
from farm.manager.bridges import Bridges
from farm.protocol.live import Closed, Mode
from farm.stores.ports.routes import CoordinatorId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_PURPOSE = "viewer"

HeldBy = Callable[[ClientId], Awaitable[CoordinatorId | None]]
"""As `AppNode.held_by`."""


class _Looks(BaseModel):
    """Who wants to look at what, and may."""

    model_config = ConfigDict(extra="ignore")

    namespace: str
    context: str
    mode: Mode
    name: str
    expires_at: float | None


class Elsewhere:
    """Brings viewers to the coordinator that shows a tab, and serves those that others bring."""

    def __init__(
        self, bridges: Bridges, held_by: HeldBy, places: Places, sessions: Sessions
    ) -> None:
        self._bridges = bridges
        self._held_by = held_by
        self._places = places
        self._sessions = sessions
        bridges.serve(_PURPOSE, self._brought)

    async def show(self, request: web.Request, place: Place, grant: Grant) -> web.StreamResponse:
        """Show a tab on the WebSocket that is asked for, whoever holds its agent's link.

        Raises:
            ClientAbsentError: If nobody does, or who does says nothing.
            NotFoundError: If who does knows no such tab.
            StoreUnavailableError: If who does can't be found out.
        """
        holder = await self._held_by(place.client_id)
        if holder is None:
            socket = await DialledSocket.of(request, max_bytes=MAX_FRAME_BYTES)
            await self._sessions.serve(socket, place, grant)
            return socket.response
        looks = _Looks(
            namespace=grant.namespace,
            context=place.context,
            mode=grant.mode,
            name=grant.name,
            expires_at=grant.expires_at,
        )
        async with self._bridges.to(holder, _PURPOSE, looks.model_dump_json()) as bridge:
            socket = await DialledSocket.of(request, max_bytes=MAX_FRAME_BYTES)
            log.info("live.carried", context=place.context, viewer=grant.name, to=holder)
            await carry(socket, bridge, _closed)
        return socket.response

    async def _brought(self, said: str, bridge: Bridge) -> None:
        looks = _Looks.model_validate_json(said)
        namespace = Namespace(looks.namespace)
        place = await self._places.find(namespace, looks.context)
        await bridge.accept()
        ends = looks.expires_at
        grant = Grant(
            namespace=namespace,
            context=looks.context,
            mode=looks.mode,
            name=looks.name,
            expires_at=None if ends is None else Instant(ends),
        )
        await self._sessions.serve(bridge, place, grant)


def _closed(why: str) -> str:
    detail = f"the coordinator that showed this tab is out of reach: {why}"
    return Closed(reason="elsewhere", detail=detail[:500]).model_dump_json()
