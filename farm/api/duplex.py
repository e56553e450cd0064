"""Messages both ways: on a WebSocket that was dialled here, or at another coordinator."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from aiohttp import WSMsgType, web

from farm.manager.bridge import Bridge

_SEND_S = 10.0
"""Who takes nothing, or says nothing, for so long is let go."""
_CLOSE_S = 2.0
_REASON_BYTES = 123


class Duplex(Protocol):
    """Messages in order both ways, texts and bytes, until either side ends it."""

    def messages(self) -> AsyncIterator[str | bytes]:
        """Yield what the other side sends, until it has ended."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send a message; waits while the other side takes nothing.

        Raises:
            ConnectionError: If it has ended.
        """
        ...

    async def close(self, code: int = 1000, why: str = "") -> None:
        """End it when all that was sent has gone; nothing, where it has ended."""
        ...

    def cut(self) -> None:
        """End it now, without a word."""
        ...


class DialledSocket:
    """A WebSocket that was dialled here."""

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self._request = request
        self.response = socket

    @classmethod
    async def of(cls, request: web.Request, *, max_bytes: int) -> "DialledSocket":
        """Take the WebSocket that a request asks for, with messages up to so many bytes."""
        socket = web.WebSocketResponse(
            max_msg_size=max_bytes, compress=False, heartbeat=_SEND_S, timeout=_CLOSE_S
        )
        await socket.prepare(request)
        return cls(request, socket)

    async def messages(self) -> AsyncIterator[str | bytes]:
        """See `Duplex.messages`."""
        async for frame in self.response:
            if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                yield frame.data

    async def send(self, message: str | bytes) -> None:
        """See `Duplex.send`."""
        if isinstance(message, str):
            await self.response.send_str(message)
        else:
            await self.response.send_bytes(message)

    async def close(self, code: int = 1000, why: str = "") -> None:
        """See `Duplex.close`."""
        await self.response.close(code=code, message=why.encode()[:_REASON_BYTES])

    def cut(self) -> None:
        """See `Duplex.cut`."""
        if self._request.transport is not None:
            self._request.transport.abort()


async def carry(
    socket: DialledSocket, bridge: Bridge, last_words: Callable[[str], str] | None = None
) -> None:
    """Carry messages between a socket and who serves it at the other end, until either ends it.

    `last_words` makes what the socket is told last, of why the bridge was lost.
    """
    async with asyncio.TaskGroup() as group:
        there = group.create_task(_pour(socket, bridge), name="carry there")
        back = group.create_task(_pour(bridge, socket), name="carry back")
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        there.cancel()
        back.cancel()
    end = bridge.end
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(_SEND_S):
            if end is not None and end.lost and last_words is not None:
                await socket.send(last_words(end.why))
            await socket.close(*((1000, "") if end is None else (end.code, end.why)))


async def _pour(source: Duplex, sink: Duplex) -> None:
    with contextlib.suppress(ConnectionError, TimeoutError):
        async for message in source.messages():
            async with asyncio.timeout(_SEND_S):
                await sink.send(message)
