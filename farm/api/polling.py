"""`/v1/agent/poll`: links of agents whose network breaks WebSockets, by requests alone.

A session is held by the coordinator that has opened it. Its requests may come to any: a balancer
need not know which belong together.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from http import HTTPStatus

import structlog
from aiohttp import web

from farm.api.agent_links import AgentLinks
from farm.api.answers import answer, large_body_of
from farm.api.deps import principal_of
from farm.api.poll_forwarding import PollForwarding
from farm.api.poll_socket import PollSocket
from farm.api.routes import Access, Answer, Route
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError, TooLargeError
from farm.protocol.polling import LONGEST_WAIT_S, Exchange, Exchanged, Opened

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_BESIDE = 64 * 1024


class LongPolls:
    """The sessions of one coordinator; `run` is the owner of their links.

    Args:
        links: Lets the agents in.
        forwarding: Reaches the sessions of other coordinators, where there are any.
    """

    def __init__(self, links: AgentLinks, forwarding: PollForwarding | None = None) -> None:
        self._links = links
        self._forwarding = forwarding
        self._sessions: dict[str, PollSocket] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Serve the links that are opened, until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            if self._forwarding is not None:
                await self._forwarding.run(self._here)
            await asyncio.Event().wait()

    async def open(self, request: web.Request) -> web.Response:
        """Open a session; the agent says `hello` in it."""
        if self._group is None:
            raise StoreUnavailableError("the farm has not started yet")
        session, silence_s = f"poll_{secrets.token_urlsafe(24)}", self._links.rules.window_s
        if self._forwarding is not None:
            session = self._forwarding.name_of(session)
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
        with self._asking(request):
            try:
                said = await self._said(request)
            except TooLargeError:
                await self._do(request, None)
                raise
            given = await self._do(request, said)
        if given is None:
            raise StoreUnavailableError("another coordinator has answered nothing")
        return answer(given)

    @contextlib.contextmanager
    def _asking(self, request: web.Request) -> Iterator[None]:
        """Know that the agent is there, also while its message is long on the way."""
        socket = self._held(request.match_info["session"], principal_of(request).token_id)
        with contextlib.nullcontext() if socket is None else socket.request():
            yield

    def _held(self, session: str, token_id: str) -> PollSocket | None:
        """Return a session that is held here, if it is this token's."""
        socket = self._sessions.get(session)
        return None if socket is None or socket.bearer.token_id != token_id else socket

    async def _said(self, request: web.Request) -> Exchange:
        most = self._links.rules.max_frame_bytes
        said = await large_body_of(request, Exchange, max_bytes=2 * most + _BESIDE)
        if any(len(text.encode()) > most for text in said.messages):
            raise TooLargeError(f"a message has at most {most} bytes", max_bytes=most)
        return said

    async def end(self, request: web.Request) -> web.Response:
        """End a session; the agent has gone, or goes on with another."""
        await self._do(request, None)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _do(self, request: web.Request, said: Exchange | None) -> Exchanged | None:
        """Do what is asked where the session is; None is asked to end it."""
        session, token_id = request.match_info["session"], principal_of(request).token_id
        if session in self._sessions or self._forwarding is None:
            return await self._here(session, token_id, said)
        return await self._forwarding.ask(session, token_id, said)

    async def _here(self, session: str, token_id: str, said: Exchange | None) -> Exchanged | None:
        socket = self._held(session, token_id)
        if socket is None:
            raise NotFoundError("there is no such session")
        if said is None:
            await socket.close()
            return None
        with socket.request():
            try:
                return await socket.exchange(said)
            except ConflictError:
                await socket.close()
                raise


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
