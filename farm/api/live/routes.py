"""`/v1/live`: the wall, one tab, and links to both. A page and its WebSocket have one address."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

import structlog
from aiohttp import hdrs, web

from farm.api.answers import answer, body_of
from farm.api.channels import AgentChannels
from farm.api.deps import namespace_of, principal_of
from farm.api.live.elsewhere import Elsewhere
from farm.api.live.links import COOKIES, Grant, LiveLinks
from farm.api.live.pages import load
from farm.api.live.places import Places, in_path
from farm.api.live.session import Sessions
from farm.api.live.wall import Wall
from farm.api.request_state import GRANT
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.views import moment
from farm.core.model import Instant
from farm.errors import InvalidInputError
from farm.protocol.resources import LiveLinkCreate, LiveLinkCreated

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LINK_PARAMETER = "link"
_PREFIX = "/v1/live"
_PARAMETERS = (
    Parameter(
        name=LINK_PARAMETER,
        description="What `POST /v1/live-links` has given; kept as a cookie from then on.",
    ),
    Parameter(name="overlay", description="`0`: without what the tab shows people of its job."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """All that is needed to show tabs to people."""

    links: LiveLinks
    places: Places
    sessions: Sessions
    wall: Wall
    channels: AgentChannels
    default_link_s: float
    longest_link_s: float
    elsewhere: Elsewhere


class _Handlers:
    """What is done for each route."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._tab_page, self._wall_page = load("live"), load("wall")

    async def live_tab(self, request: web.Request) -> web.StreamResponse:
        """Show one tab: its page, or its pictures."""
        live, grant, context = self._live, request[GRANT], request.match_info["context"]
        place = await live.places.find(grant.namespace, context)
        if not _is_socket(request):
            path = f"{_PREFIX}/{in_path(context)}"
            return _with_cookie(request, path, live, grant) or self._tab_page.response()
        return await live.elsewhere.show(request, place, _for_tab(grant))

    async def live_wall(self, request: web.Request) -> web.StreamResponse:
        """Show what there is to be seen."""
        grant = request[GRANT]
        if not _is_socket(request):
            return _with_cookie(request, _PREFIX, self._live, grant) or self._wall_page.response()
        return await self._live.wall.serve(request, grant)

    async def create_live_link(self, request: web.Request) -> web.Response:
        """Make a link; what it opens must be there."""
        live, namespace = self._live, namespace_of(request)
        wanted = await body_of(request, LiveLinkCreate)
        if wanted.context is not None:
            await live.places.find(namespace, wanted.context)
        elif wanted.mode == "control":
            raise InvalidInputError("the wall is for looking only; name a context to control")
        expires_at = Instant(live.sessions.clock() + self._lasts_s(wanted))
        grant, secret = live.links.mint(
            namespace=namespace,
            context=wanted.context,
            mode=wanted.mode,
            name=wanted.name,
            expires_at=expires_at,
        )
        log.info("live.link_made", viewer=grant.name, context=grant.context, mode=grant.mode)
        where = "" if wanted.context is None else f"/{in_path(wanted.context)}"
        return answer(
            LiveLinkCreated(
                path=f"{_PREFIX}{where}?{LINK_PARAMETER}={secret}",
                context=grant.context,
                mode=grant.mode,
                name=grant.name,
                expires_at=moment(expires_at),
            ),
            status=HTTPStatus.CREATED,
        )

    def _lasts_s(self, wanted: LiveLinkCreate) -> float:
        longest = self._live.longest_link_s
        if wanted.lasts_s is None:
            return min(self._live.default_link_s, longest)
        if wanted.lasts_s > longest:
            raise InvalidInputError(
                f"lasts_s is at most {longest:g}, which FARM_LIVE__LONGEST_LINK_S sets"
            )
        return wanted.lasts_s

    async def agent_channel(self, request: web.Request) -> web.StreamResponse:
        """Take a channel that an agent dials."""
        return await self._live.channels.serve(request, principal_of(request))


def live_routes(live: Live) -> tuple[Route, ...]:
    """Return the routes, for `build_app(more_routes=...)`."""
    handlers = _Handlers(live)
    switching = Answer(
        status=HTTPStatus.SWITCHING_PROTOCOLS,
        description="Asked for as a WebSocket: messages as farm.protocol.live has them.",
        empty=True,
    )
    page = Answer(description="The page.", media_types=("text/html",))
    return (
        _route("/v1/live", handlers.live_wall, "Watch every tab", (page, switching)),
        _route(
            "/v1/live/{context}", handlers.live_tab, "Watch a tab, and act in it", (page, switching)
        ),
        Route(
            method="POST",
            path="/v1/live-links",
            handler=handlers.create_live_link,
            summary="Make a link to watch a tab, or all, with a browser",
            access=Access.ADMIN,
            takes_body=True,
            body=LiveLinkCreate,
            answers=(Answer(status=HTTPStatus.CREATED, model=LiveLinkCreated),),
        ),
        Route(
            method="GET",
            path="/v1/agent/channels/{channel_id}",
            handler=handlers.agent_channel,
            summary="Open a data channel that the farm has asked an agent for (WebSocket)",
            access=Access.AGENT,
            answers=(
                Answer(
                    status=HTTPStatus.SWITCHING_PROTOCOLS,
                    description="Frames as farm.protocol.channels has them.",
                    empty=True,
                ),
            ),
        ),
    )


def _route(
    path: str,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    summary: str,
    answers: tuple[Answer, ...],
) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        access=Access.LIVE,
        parameters=_PARAMETERS,
        answers=answers,
    )


def _is_socket(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def _with_cookie(request: web.Request, path: str, live: Live, grant: Grant) -> web.Response | None:
    """Take the link out of the address, where histories, logs and other pages would find it.

    None where there is none in it.
    """
    if LINK_PARAMETER not in request.query:
        return None
    kept = "?overlay=0" if request.query.get("overlay") == "0" else ""
    response = web.Response(status=HTTPStatus.SEE_OTHER, headers={hdrs.LOCATION: f"{path}{kept}"})
    if grant.expires_at is not None:
        response.set_cookie(
            COOKIES[grant.context is None],
            request.query[LINK_PARAMETER],
            path=path,
            max_age=max(1, round(grant.expires_at - live.sessions.clock())),
            httponly=True,
            samesite="Lax",  # the link may be followed from anywhere; what it opens changes nothing
            secure=request.secure or request.headers.get("X-Forwarded-Proto") == "https",
        )
    return response


def _for_tab(grant: Grant) -> Grant:
    """A link for the wall lets nobody act."""
    return replace(grant, mode="view") if grant.context is None and grant.expires_at else grant
