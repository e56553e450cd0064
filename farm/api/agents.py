"""The route of `GET /v1/agent`; what happens on the socket is `agent_link`'s."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

from farm.api.deps import principal_of
from farm.api.request_state import Principal
from farm.api.routes import Access, Answer, Route

Serve = Callable[[web.Request, Principal], Awaitable[web.StreamResponse]]
"""(request, who dials) -> the socket, once it has ended."""


def agent_route(serve: Serve) -> Route:
    """Return the route agents dial, for `build_app(more_routes=...)`."""

    async def agent_link(request: web.Request) -> web.StreamResponse:
        return await serve(request, principal_of(request))

    return Route(
        method="GET",
        path="/v1/agent",
        handler=agent_link,
        summary="Connect an agent (WebSocket)",
        access=Access.AGENT,
        answers=(
            Answer(
                status=HTTPStatus.SWITCHING_PROTOCOLS,
                description="JSON messages, as farm.protocol.messages has them.",
                empty=True,
            ),
        ),
    )
