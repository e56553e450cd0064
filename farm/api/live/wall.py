"""The wall's WebSocket: which tabs there are to be seen, and every change of that."""

import asyncio
import contextlib

from aiohttp import web

from farm.api.live.links import Grant
from farm.api.live.places import Places
from farm.clock import Clock
from farm.errors import StoreUnavailableError
from farm.jobs.feed import JobFeed
from farm.protocol.live import Closed, Tab, Tabs

_LOOK_S = 1.0
_SEND_S = 10.0


class Wall:
    """Serves the list of tabs; the pictures of each come on a socket of its own."""

    def __init__(self, places: Places, feed: JobFeed, clock: Clock) -> None:
        self._places = places
        self._feed = feed
        self._clock = clock

    async def serve(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        """Tell a viewer what there is until either side ends it."""
        socket = web.WebSocketResponse(max_msg_size=1024, compress=False, heartbeat=_SEND_S)
        await socket.prepare(request)
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.TaskGroup() as group:
                teller = group.create_task(self._tell(socket, grant), name="live.wall")
                async for _ in socket:
                    pass  # a viewer of the wall has nothing to say
                teller.cancel()
        return socket

    async def _tell(self, socket: web.WebSocketResponse, grant: Grant) -> None:
        told: str | None = None
        while (closed := self._over(grant)) is None:
            with contextlib.suppress(StoreUnavailableError):
                text = (await self._tabs(grant)).model_dump_json()
                if text != told:
                    told = text
                    await _send(socket, text)
            await asyncio.sleep(_LOOK_S)
        await _send(socket, closed.model_dump_json())
        await socket.close()

    def _over(self, grant: Grant) -> Closed | None:
        if grant.expires_at is not None and self._clock() >= grant.expires_at:
            return Closed(reason="expired", detail="the link's time is over")
        if self._feed.closed:
            return Closed(reason="farm_stops", detail="the farm is stopping")
        return None

    async def _tabs(self, grant: Grant) -> Tabs:
        return Tabs(
            tabs=tuple(
                Tab(
                    context=place.context,
                    label=place.label,
                    client_id=place.client_id,
                    job_id=place.job_id,
                    job=place.job,
                )
                for place in await self._places.all(grant.namespace)
            )
        )


async def _send(socket: web.WebSocketResponse, text: str) -> None:
    try:
        async with asyncio.timeout(_SEND_S):
            await socket.send_str(text)
    except TimeoutError:
        raise ConnectionResetError("the viewer takes nothing") from None
