"""The links that agents dial, by whatever transport, for as long as each lives."""

import asyncio

from aiohttp import web

from farm.api.agent_link import AgentLink
from farm.api.link_deps import LinkDeps
from farm.api.request_state import Principal
from farm.api.sockets import Socket, WebSocket
from farm.core.model import ClientId, LinkId


class AgentLinks:
    """Lets agents in, and ends their links."""

    def __init__(self, deps: LinkDeps) -> None:
        self._deps = deps
        self.rules = deps.rules
        self._links: set[AgentLink] = set()

    async def serve(self, request: web.Request, bearer: Principal) -> web.WebSocketResponse:
        """Run one link on a WebSocket until either side ends it."""
        socket = web.WebSocketResponse(
            max_msg_size=self.rules.max_frame_bytes,
            autoping=True,
            compress=False,
            # Ends a connection that nobody is on the other end of any more.
            heartbeat=self.rules.window_s,
        )
        await socket.prepare(request)
        await self.live(WebSocket(socket), bearer)
        return socket

    async def live(self, socket: Socket, bearer: Principal) -> None:
        """Run one link to its end, whatever it was dialled by."""
        link = AgentLink(self._deps, socket, bearer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def end(self, client_id: ClientId, link: LinkId) -> None:
        """End a link, so that its agent dials again; it is no more registered under it."""
        for one in self._links:
            if one.is_of(client_id, link):
                one.cut()

    async def close_all(self) -> None:
        """Close every link; agents dial again, or give up when the farm does not come back."""
        async with asyncio.TaskGroup() as group:
            for link in self._links:
                group.create_task(link.close(), name="close agent link")
