"""What carries the messages of one agent's link, whatever it dials by."""

from collections.abc import AsyncIterator
from typing import Protocol

from aiohttp import WSMsgType, web


class Socket(Protocol):
    """One connection: texts in order, both ways, until either side ends it."""

    @property
    def transport(self) -> str:
        """What it is called, for people."""
        ...

    def texts(self) -> AsyncIterator[str]:
        """Yield what the agent sends, until the connection has ended."""
        ...

    async def send(self, text: str) -> None:
        """Send; waits while the agent takes nothing.

        Raises:
            ConnectionError: If the connection has ended.
        """
        ...

    async def close(self, *, going: bool = False) -> None:
        """End it when all that was sent has gone; `going` says that the farm stops."""
        ...


class WebSocket:
    """A WebSocket that an agent has dialled."""

    transport = "websocket"

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def texts(self) -> AsyncIterator[str]:
        """See `Socket.texts`; other frames mean nothing."""
        async for frame in self._socket:
            if frame.type is WSMsgType.TEXT:
                yield frame.data

    async def send(self, text: str) -> None:
        """See `Socket.send`."""
        await self._socket.send_str(text)

    async def close(self, *, going: bool = False) -> None:
        """See `Socket.close`."""
        if going:
            await self._socket.close(code=1001, message=b"the farm is stopping")
        else:
            await self._socket.close()
