"""What carries the messages of one agent's link, whatever it dials by."""

from collections.abc import AsyncIterator, Mapping
from enum import Enum, auto
from typing import Protocol

from aiohttp import WSCloseCode, WSMsgType, web


class Closing(Enum):
    """Why a connection is ended from this side; its agent dials again in any case but a refusal."""

    IS_OVER = auto()
    FARM_STOPS = auto()
    DIAL_AGAIN = auto()


_CLOSE: Mapping[Closing, tuple[WSCloseCode, bytes]] = {
    Closing.IS_OVER: (WSCloseCode.OK, b""),
    Closing.FARM_STOPS: (WSCloseCode.GOING_AWAY, b"the farm is stopping"),
    Closing.DIAL_AGAIN: (WSCloseCode.TRY_AGAIN_LATER, b"dial again"),
}


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

    async def close(self, why: Closing = Closing.IS_OVER) -> None:
        """End it when all that was sent has gone; nothing, where it has ended."""
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

    async def close(self, why: Closing = Closing.IS_OVER) -> None:
        """See `Socket.close`."""
        code, message = _CLOSE[why]
        await self._socket.close(code=code, message=message)
