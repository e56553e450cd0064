"""`/v1/agent/poll`: links of agents whose network breaks WebSockets, by requests alone."""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from http import HTTPStatus

import structlog
from aiohttp import web

from farm.api.agent_link import AgentLinks
from farm.api.answers import answer, large_body_of
from farm.api.deps import principal_of
from farm.api.request_state import Principal
from farm.api.routes import Access, Answer, Route
from farm.api.sockets import Closing
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError, TooLargeError
from farm.protocol.polling import LONGEST_WAIT_S, Exchange, Exchanged, Opened

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_IN_HAND = 64
"""So many messages may wait on either side; then whoever sends has to."""
_ANSWER_BYTES = 1024 * 1024
_BESIDE = 64 * 1024


class PollSocket:
    """The farm's end of one session."""

    transport = "longpoll"

    def __init__(self, bearer: Principal, *, silence_s: float) -> None:
        self.bearer = bearer
        self._silence_s = silence_s
        self._inbox: deque[str] = deque()
        self._taken = 0
        self._outbox: deque[str] = deque()
        self._acked = 0
        """The number of the last message that the agent is known to have."""
        self._requests = 0
        self._ended = False
        self._stirred = asyncio.Event()
        self._silence: asyncio.TimerHandle | None = None

    # The link's side

    async def texts(self) -> AsyncIterator[str]:
        """See `Socket.texts`; what has come before the end is yielded too."""
        while True:
            await self._until(lambda: bool(self._inbox) or self._ended)
            if not self._inbox:
                return
            text = self._inbox.popleft()
            self._stir()
            yield text

    async def send(self, text: str) -> None:
        """See `Socket.send`."""
        await self._until(lambda: len(self._outbox) < _IN_HAND or self._ended)
        if self._ended:
            raise ConnectionResetError("the session has ended")
        self._outbox.append(text)
        self._stir()

    async def close(self, why: Closing = Closing.IS_OVER) -> None:
        """See `Socket.close`; what was sent before can still be fetched."""
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._stir()

    def _stir(self) -> None:
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._stirred.wait()

    # The agent's side

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Know that the agent is there, for as long as its request takes."""
        self._requests += 1
        if self._silence is not None:
            self._silence.cancel()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self.begin_silence()

    def begin_silence(self) -> None:
        """End the session unless a request comes in time."""
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._silence_s, self._end)

    async def exchange(self, said: Exchange) -> Exchanged:
        """Take what the agent sends, and give what there is for it, now or in a while.

        Raises:
            ConflictError: If messages are missing between those that came and these.
        """
        self._take(said)
        self._acknowledge(said.ack)
        self._stir()
        if said.messages:
            await self._until(lambda: len(self._inbox) < _IN_HAND or self._ended)
        if said.wait_s is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(said.wait_s, LONGEST_WAIT_S)):
                    await self._until(lambda: bool(self._outbox) or self._ended)
        messages = () if said.wait_s is None else tuple(self._next())
        return Exchanged(
            seq=self._acked + 1,
            messages=messages,
            ack=self._taken,
            closed=self._ended and len(messages) == len(self._outbox),
        )

    def _take(self, said: Exchange) -> None:
        if said.messages and said.seq > self._taken + 1:
            raise ConflictError(f"message {self._taken + 1} is missing", has=self._taken)
        if self._ended:
            return
        new = said.messages[self._taken + 1 - said.seq :]
        self._inbox.extend(new)
        self._taken += len(new)

    def _acknowledge(self, ack: int) -> None:
        while self._outbox and self._acked < ack:
            self._outbox.popleft()
            self._acked += 1

    def _next(self) -> Iterator[str]:
        size = 0
        for text in self._outbox:
            if size and size + len(text) > _ANSWER_BYTES:
                return
            size += len(text)
            yield text


class LongPolls:
    """The sessions of one coordinator; `run` is the owner of their links."""

    def __init__(self, links: AgentLinks) -> None:
        self._links = links
        self._sessions: dict[str, PollSocket] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Serve the links that are opened, until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            await asyncio.Event().wait()

    async def open(self, request: web.Request) -> web.Response:
        """Open a session; the agent says `hello` in it."""
        if self._group is None:
            raise StoreUnavailableError("the farm has not started yet")
        session, silence_s = f"poll_{secrets.token_urlsafe(24)}", self._links.rules.window_s
        socket = PollSocket(principal_of(request), silence_s=silence_s)
        self._sessions[session] = socket
        socket.begin_silence()
        self._group.create_task(self._serve(session, socket), name="long poll")
        opened = Opened(session=session, wait_s=LONGEST_WAIT_S, silence_s=silence_s)
        return answer(opened, status=HTTPStatus.CREATED)

    async def _serve(self, session: str, socket: PollSocket) -> None:
        try:
            await self._links.live(socket, socket.bearer)
        except Exception:
            log.exception("link.failed")
        finally:
            await socket.close()
            # The last messages, such as why it was refused, are there to be fetched.
            loop = asyncio.get_running_loop()
            loop.call_later(self._links.rules.window_s, self._sessions.pop, session, None)

    async def exchange(self, request: web.Request) -> web.Response:
        """Take messages, and give some."""
        socket, most = self._found(request), self._links.rules.max_frame_bytes
        with socket.request():
            try:
                said = await large_body_of(request, Exchange, max_bytes=2 * most + _BESIDE)
                if any(len(text.encode()) > most for text in said.messages):
                    raise TooLargeError(f"a message has at most {most} bytes", max_bytes=most)
                return answer(await socket.exchange(said))
            except (TooLargeError, ConflictError):
                await socket.close()
                raise

    async def end(self, request: web.Request) -> web.Response:
        """End a session; the agent has gone, or goes on with another."""
        await self._found(request).close()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _found(self, request: web.Request) -> PollSocket:
        socket = self._sessions.get(request.match_info["session"])
        if socket is None or socket.bearer.token_id != principal_of(request).token_id:
            raise NotFoundError("there is no such session")
        return socket


def poll_routes(polls: LongPolls) -> tuple[Route, ...]:
    """Return the routes, for `build_app(more_routes=...)`."""

    async def open_session(request: web.Request) -> web.Response:
        return await polls.open(request)

    async def exchange(request: web.Request) -> web.Response:
        return await polls.exchange(request)

    async def end_session(request: web.Request) -> web.Response:
        return await polls.end(request)

    return (
        Route(
            method="POST",
            path="/v1/agent/poll",
            handler=open_session,
            summary="Connect an agent without a WebSocket",
            access=Access.AGENT,
            answers=(Answer(status=HTTPStatus.CREATED, model=Opened),),
        ),
        Route(
            method="POST",
            path="/v1/agent/poll/{session}",
            handler=exchange,
            summary="Exchange messages with an agent",
            access=Access.AGENT,
            takes_body=True,
            body=Exchange,
            answers=(Answer(model=Exchanged),),
        ),
        Route(
            method="DELETE",
            path="/v1/agent/poll/{session}",
            handler=end_session,
            summary="Disconnect an agent",
            access=Access.AGENT,
            answers=(Answer(status=HTTPStatus.NO_CONTENT, description="It is over.", empty=True),),
        ),
    )
