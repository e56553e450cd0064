"""Data channels to the farm: a WebSocket each, dialled when the farm asks for one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import aiohttp

from agent.ports import ChannelClosed
from farm.protocol.channels import FrameError, pack, unpack
from farm.protocol.live import MAX_DROP_BYTES

_DIAL_S = 10.0
_SEND_S = 10.0
"""A channel that takes nothing for so long is given up."""
_SILENCE_S = 10.0
_CLOSE_S = 1.0
_MAX_FRAME_BYTES = MAX_DROP_BYTES + 64 * 1024


class WebSocketChannel:
    """Implements `agent.ports.Channel`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()

    async def send(self, message: str, payload: bytes | None = None) -> None:
        """See `Channel.send`."""
        try:
            async with asyncio.timeout(_SEND_S), self._sending:
                if payload is None:
                    await self._socket.send_str(message)
                else:
                    await self._socket.send_bytes(pack(message, payload))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ChannelClosed(str(error) or type(error).__name__) from error

    async def receive(self) -> AsyncIterator[tuple[str | bytes, memoryview | None]]:
        """See `Channel.receive`."""
        async for frame in self._socket:
            match frame.type:
                case aiohttp.WSMsgType.TEXT:
                    yield frame.data, None
                case aiohttp.WSMsgType.BINARY:
                    try:
                        yield unpack(frame.data)
                    except FrameError as error:
                        raise ChannelClosed(f"the farm sent no frame of ours: {error}") from None
                case _:
                    pass


class WebSocketChannels:
    """Implements `agent.ports.Channels`."""

    def __init__(self, session: aiohttp.ClientSession, farm: Callable[[], str]) -> None:
        self._session = session
        self._farm = farm
        """Says where the farm is that the agent is linked to."""

    @contextlib.asynccontextmanager
    async def dial(self, channel_id: str) -> AsyncIterator[WebSocketChannel]:
        """See `Channels.dial`."""
        try:
            async with asyncio.timeout(_DIAL_S):
                socket = await self._session.ws_connect(
                    f"{self._farm()}/v1/agent/channels/{channel_id}",
                    max_msg_size=_MAX_FRAME_BYTES,
                    heartbeat=_SILENCE_S,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ChannelClosed(str(error) or type(error).__name__) from error
        try:
            yield WebSocketChannel(socket)
        finally:
            await socket.close()
