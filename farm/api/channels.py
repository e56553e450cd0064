"""Data channels: what is big or fast travels beside an agent's link, on a socket it dials.

The coordinator that holds the link asks for a channel, and its mark is in the channel's name: where
the agent's dial comes to another, as behind a balancer, that one carries it to who has asked.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict

from farm.api.duplex import DialledSocket, Duplex, carry
from farm.api.request_state import Principal
from farm.core.model import ClientId
from farm.errors import ClientAbsentError, NotFoundError
from farm.manager.bridge import Bridge
from farm.manager.bridges import Bridges
from farm.protocol import messages as wire
from farm.protocol.channels import FrameError, pack, unpack

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_DIAL_S = 10.0
"""An agent that has not dialled by then will not."""
_SEND_S = 10.0
"""An agent that takes nothing for so long has its channel cut."""
_MAX_FRAME_BYTES = 16 * 1024 * 1024
_PURPOSE = "channel"
_PREFIX = "ch_"
_SECRET_BYTES = 24

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
        self.dialled: asyncio.Future[Duplex] = asyncio.get_running_loop().create_future()
        self._sending = asyncio.Lock()

    async def send(self, message: str, payload: bytes | memoryview | None = None) -> None:
        """Send a JSON text, with or without bytes beside it.

        Raises:
            ConnectionError: If the channel is over, or nothing is taken.
        """
        socket = await asyncio.shield(self.dialled)
        try:
            async with asyncio.timeout(_SEND_S), self._sending:
                await socket.send(message if payload is None else pack(message, bytes(payload)))
        except TimeoutError:
            socket.cut()
            raise ConnectionResetError("the agent takes nothing") from None

    async def close(self) -> None:
        """End it; may be repeated."""
        if not self.dialled.done():
            self.dialled.cancel()
        elif not self.dialled.cancelled() and self.dialled.exception() is None:
            with contextlib.suppress(ConnectionError):
                await self.dialled.result().close()


class _Dialled(BaseModel):
    """What is said of a channel that was dialled elsewhere."""

    model_config = ConfigDict(extra="ignore")

    channel_id: str
    token_id: str


class AgentChannels:
    """Asks agents for channels, and takes those that they dial."""

    def __init__(self, tell: Tell, owns: Callable[[str, ClientId], bool], bridges: Bridges) -> None:
        """`owns` tells whether a token is that of an agent that is connected here."""
        self._tell = tell
        self._owns = owns
        self._bridges = bridges
        self._asked: dict[str, Channel] = {}
        bridges.serve(_PURPOSE, self._carried)

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
        channel_id = f"{_PREFIX}{self._bridges.mark}{secrets.token_urlsafe(_SECRET_BYTES)}"
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

    async def serve(self, request: web.Request, bearer: Principal) -> web.StreamResponse:
        """Take a channel that an agent dials, and read it to its end, here or where it was asked.

        Raises:
            NotFoundError: If nobody waits for it, or the agent is not the one that was asked.
            ClientAbsentError: If the coordinator that asked for it says nothing.
            StoreUnavailableError: If who asked for it can't be found out.
        """
        channel_id = request.match_info["channel_id"]
        elsewhere = None
        if channel_id not in self._asked:
            mark = channel_id.removeprefix(_PREFIX)[: len(self._bridges.mark)]
            elsewhere = await self._bridges.marked(mark)
        if elsewhere is None:
            channel = self._waiting(channel_id, bearer.token_id)
            socket = await DialledSocket.of(request, max_bytes=_MAX_FRAME_BYTES)
            await self._take(channel, socket)
            return socket.response
        said = _Dialled(channel_id=channel_id, token_id=bearer.token_id).model_dump_json()
        async with self._bridges.to(elsewhere, _PURPOSE, said) as bridge:
            socket = await DialledSocket.of(request, max_bytes=_MAX_FRAME_BYTES)
            await carry(socket, bridge)
        return socket.response

    async def _carried(self, said: str, bridge: Bridge) -> None:
        """Take a channel that was dialled at another coordinator, which knows the token."""
        dialled = _Dialled.model_validate_json(said)
        channel = self._waiting(dialled.channel_id, dialled.token_id)
        await bridge.accept()
        await self._take(channel, bridge)

    def _waiting(self, channel_id: str, token_id: str) -> Channel:
        channel = self._asked.get(channel_id)
        if channel is None or channel.dialled.done() or not self._owns(token_id, channel.client_id):
            raise NotFoundError("nobody has asked this agent for this channel")
        return channel

    async def _take(self, channel: Channel, socket: Duplex) -> None:
        if channel.dialled.done():
            await socket.close()
            return
        channel.dialled.set_result(socket)
        try:
            await self._read(socket, channel)
        finally:
            channel.over()

    async def _read(self, socket: Duplex, channel: Channel) -> None:
        try:
            async for message in socket.messages():
                if isinstance(message, str):
                    await channel.hear(message, None)
                else:
                    await channel.hear(*unpack(message))
        except (FrameError, ValueError) as error:
            log.warning("channel.unreadable", client_id=channel.client_id, reason=str(error)[:200])
            channel.over()
            await socket.close(1008, "this is no message of a channel")
        except ConnectionError as error:
            log.info("channel.broken", client_id=channel.client_id, reason=str(error))
