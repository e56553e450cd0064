"""Ways to be connected to the farm: a WebSocket, or requests alone where networks break it."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Protocol

import aiohttp
from pydantic import ValidationError

from farm.protocol.polling import Exchange, Exchanged, Opened

_MAX_FRAME_BYTES = 32 * 1024 * 1024
_SEND_S = 1.0
_SILENCE_S = 10.0
"""Without an answer to a ping of the protocol for this long, nobody is on the other end."""
_AGAIN_S = 0.2
_AT_ONCE = 64
_AT_ONCE_BYTES = 1024 * 1024
_MOST_WAITING = 1024


class Connection(Protocol):
    """One connection: texts in order, both ways, until either side ends it."""

    @property
    def closed(self) -> bool:
        """Tell whether nothing can be sent any more."""
        ...

    def texts(self) -> AsyncIterator[str]:
        """Yield what the farm sends, until the connection has ended."""
        ...

    async def send(self, text: str) -> None:
        """Send; waits while the farm takes nothing. Raises ClientError or OSError."""
        ...


Dial = Callable[[aiohttp.ClientSession, str], contextlib.AbstractAsyncContextManager[Connection]]
"""(session, the farm's address) -> a connection, for as long as the block lasts."""


class _WebSocket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    @property
    def closed(self) -> bool:
        return self._socket.closed

    async def texts(self) -> AsyncIterator[str]:
        async for frame in self._socket:
            if frame.type is aiohttp.WSMsgType.TEXT:
                yield frame.data

    async def send(self, text: str) -> None:
        await self._socket.send_str(text)


@contextlib.asynccontextmanager
async def websocket(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Connection]:
    """Dial `GET /v1/agent`. Raises WSServerHandshakeError where it is refused."""
    socket = await session.ws_connect(
        f"{url}/v1/agent",
        max_msg_size=_MAX_FRAME_BYTES,
        autoclose=True,
        heartbeat=_SILENCE_S,
        timeout=aiohttp.ClientWSTimeout(ws_close=_SEND_S),
    )
    try:
        yield _WebSocket(socket)
    finally:
        await socket.close()


class _Polls:
    """A session: one request that waits, and one that hands in, each repeated until it is heard."""

    def __init__(self, session: aiohttp.ClientSession, url: str, opened: Opened) -> None:
        self._session = session
        self._url = f"{url}/v1/agent/poll/{opened.session}"
        self._wait_s, self._silence_s = opened.wait_s, opened.silence_s
        self._heard_at = asyncio.get_running_loop().time()
        self._ack = 0
        self._sent = 0
        self._waiting: deque[str] = deque()
        self._stirred = asyncio.Event()
        self._asking: asyncio.Timeout | None = None
        self.closed = False

    async def texts(self) -> AsyncIterator[str]:
        while not self.closed:
            said = await self._wait_for_some()
            new = () if said is None else said.messages[max(0, self._ack + 1 - said.seq) :]
            for text in new:
                self._ack += 1
                yield text
            if said is None or said.closed:
                self._close()

    async def _wait_for_some(self) -> Exchanged | None:
        """Wait for messages; None when the session is over, which may be learned meanwhile."""
        try:
            async with asyncio.timeout(None) as self._asking:
                return await self._ask(Exchange(ack=self._ack, wait_s=self._wait_s))
        except TimeoutError:
            return None
        finally:
            self._asking = None

    async def send(self, text: str) -> None:
        while len(self._waiting) >= _MOST_WAITING and not self.closed:
            await self._stirred.wait()
        if not self.closed:
            self._waiting.append(text)
            self._stir()

    async def hand_in(self) -> None:
        """Hand in what is sent, in order, until the session ends."""
        while not self.closed:
            if not self._waiting:
                await self._stirred.wait()
                continue
            batch = self._batch()
            said = await self._ask(Exchange(seq=self._sent + 1, messages=batch, ack=self._ack))
            if said is None:
                self._close()
                return
            for _ in range(said.ack - self._sent):
                self._waiting.popleft()
            self._sent = said.ack
            self._stir()

    def _batch(self) -> tuple[str, ...]:
        batch: list[str] = []
        size = 0
        for text in list(self._waiting)[:_AT_ONCE]:
            if batch and size + len(text) > _AT_ONCE_BYTES:
                break
            batch.append(text)
            size += len(text)
        return tuple(batch)

    async def _ask(self, said: Exchange) -> Exchanged | None:
        """Make a request until it is answered; None when the session is over."""
        now = asyncio.get_running_loop().time
        timeout = aiohttp.ClientTimeout(total=(said.wait_s or 0.0) + _SILENCE_S)
        body = said.model_dump_json()
        while not self.closed:
            try:
                async with self._session.post(self._url, data=body, timeout=timeout) as answer:
                    if answer.status == HTTPStatus.OK:
                        self._heard_at = now()
                        return Exchanged.model_validate_json(await answer.read())
                    if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        return None
            except (aiohttp.ClientError, OSError, TimeoutError, ValidationError):
                pass  # it may be the network's; the numbers make it harmless to ask again
            if now() - self._heard_at > self._wait_s + self._silence_s:
                return None
            await asyncio.sleep(_AGAIN_S)
        return None

    async def over(self) -> None:
        """Hand in the last that was sent, and tell the farm that the session has ended."""
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(_SEND_S):
                if self._waiting and not self.closed:
                    await self._ask(Exchange(seq=self._sent + 1, messages=self._batch()))
                async with self._session.delete(self._url):
                    pass

    def _close(self) -> None:
        if self._asking is not None and not self.closed:
            self._asking.reschedule(0.0)
        self.closed = True
        self._stir()

    def _stir(self) -> None:
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()


@contextlib.asynccontextmanager
async def longpoll(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Connection]:
    """Open a session by `POST /v1/agent/poll`. Raises ClientResponseError where it is refused."""
    async with session.post(f"{url}/v1/agent/poll") as answer:
        answer.raise_for_status()
        opened = Opened.model_validate_json(await answer.read())
    polls = _Polls(session, url, opened)
    try:
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(polls.hand_in(), name="long poll")
            try:
                yield polls
            finally:
                sender.cancel()
                await polls.over()
    except BaseExceptionGroup as failed:
        # What ended the block is to be met as it was raised there.
        if len(failed.exceptions) == 1:
            raise failed.exceptions[0] from None
        raise
