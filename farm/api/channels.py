"""Data channels: what is big or fast travels beside an agent's link, on a socket it dials."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiohttp import WSMsgType, web

from farm.api.request_state import Principal
from farm.core.model import ClientId
from farm.errors import ClientAbsentError, NotFoundError
from farm.protocol import messages as wire
from farm.protocol.channels import FrameError, pack, unpack

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_DIAL_S = 10.0
"""An agent that has not dialled by then will not."""
_SEND_S = 10.0
"""An agent that takes nothing for so long has its channel cut."""
_CLOSE_S = 2.0
_MAX_FRAME_BYTES = 16 * 1024 * 1024

Tell = Callable[[ClientId, wire.ToAgent], Awaitable[object]]
Hear = Callable[[bytes | str, memoryview | None], Awaitable[None]]
"""(JSON text, the bytes beside it) -> None; raises ValueError for what it can't read."""


class ChannelRefusedError(Exception):
    """The agent will not open the channel, and says why."""


class Channel:
    """One channel, from when it was asked for to its end."""

    def __init__(self, client_id: ClientId, hear: Hear, over: Callable[[], None]) -> None:
        self.client_id = client_id
        self.hear = hear
        self.over = over
        self.dialled: asyncio.Future[web.WebSocketResponse] = (
            asyncio.get_running_loop().create_future()
        )
        self._sending = asyncio.Lock()

    async def send(self, message: str, payload: bytes | memoryview | None = None) -> None:
        """Send a JSON text, with or without bytes beside it.

        Raises:
            ConnectionError: If the channel is over, or nothing is taken.
        """
        socket = await asyncio.shield(self.dialled)
        try:
            async with asyncio.timeout(_SEND_S), self._sending:
                if payload is None:
                    await socket.send_str(message)
                else:
                    await socket.send_bytes(pack(message, bytes(payload)))
        except TimeoutError:
            self.cut()
            raise ConnectionResetError("the agent takes nothing") from None

    def cut(self) -> None:
        """End it without a word."""
        if self.dialled.done() and not self.dialled.cancelled() and not self.dialled.exception():
            request = self.dialled.result()._req
            if request is not None and request.transport is not None:
                request.transport.abort()

    async def close(self) -> None:
        """End it; may be repeated."""
        if not self.dialled.done():
            self.dialled.cancel()
        elif not self.dialled.cancelled() and self.dialled.exception() is None:
            with contextlib.suppress(ConnectionError):
                await self.dialled.result().close()


class AgentChannels:
    """Asks agents for channels, and takes those that they dial."""

    def __init__(self, tell: Tell, owns: Callable[[str, ClientId], bool]) -> None:
        """`owns` tells whether a token is that of an agent that is connected."""
        self._tell = tell
        self._owns = owns
        self._asked: dict[str, Channel] = {}

    async def open(
        self,
        client_id: ClientId,
        *,
        kind: str,
        context_id: str,
        epoch: int,
        hear: Hear,
        over: Callable[[], None],
        options: Mapping[str, Any] | None = None,
    ) -> Channel:
        """Ask for a channel and wait until it is dialled; `over` is called when it has ended.

        Raises:
            ClientAbsentError: If the agent is not linked here, or does not dial.
            ChannelRefusedError: If it refuses.
        """
        channel_id = f"ch_{secrets.token_urlsafe(24)}"
        channel = self._asked[channel_id] = Channel(client_id, hear, over)
        try:
            asked = wire.OpenChannel(
                channel_id=channel_id,
                kind=kind,
                context_id=context_id,
                epoch_number=epoch,
                options=dict(options or {}),
            )
            await self._tell(client_id, asked)
            async with asyncio.timeout(_DIAL_S):
                await channel.dialled
        except TimeoutError:
            raise ClientAbsentError(f"agent {client_id} did not open a channel in time") from None
        finally:
            self._asked.pop(channel_id, None)
        return channel

    def refused(self, client_id: ClientId, message: wire.ChannelRefused) -> None:
        """An agent will not open a channel it was asked for."""
        channel = self._asked.get(message.channel_id)
        if channel is not None and channel.client_id == client_id and not channel.dialled.done():
            why = f"{message.reason}: {message.detail}"
            channel.dialled.set_exception(ChannelRefusedError(why))

    async def serve(self, request: web.Request, bearer: Principal) -> web.WebSocketResponse:
        """Take a channel that an agent dials, and read it to its end.

        Raises:
            NotFoundError: If nobody waits for it, or the agent is not the one that was asked.
        """
        channel = self._asked.get(request.match_info["channel_id"])
        if (
            channel is None
            or channel.dialled.done()
            or not self._owns(bearer.token_id, channel.client_id)
        ):
            raise NotFoundError("nobody has asked this agent for this channel")
        socket = web.WebSocketResponse(
            max_msg_size=_MAX_FRAME_BYTES, compress=False, heartbeat=_SEND_S, timeout=_CLOSE_S
        )
        await socket.prepare(request)
        if channel.dialled.done():
            await socket.close()
            return socket
        channel.dialled.set_result(socket)
        try:
            await self._read(socket, channel)
        finally:
            channel.over()
        return socket

    async def _read(self, socket: web.WebSocketResponse, channel: Channel) -> None:
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await channel.hear(frame.data, None)
                elif frame.type is WSMsgType.BINARY:
                    await channel.hear(*unpack(frame.data))
        except (FrameError, ValueError) as error:
            log.warning("channel.unreadable", client_id=channel.client_id, reason=str(error)[:200])
            channel.over()
            await socket.close(code=1008, message=b"this is no message of a channel")
        except ConnectionError as error:
            log.info("channel.broken", client_id=channel.client_id, reason=str(error))
