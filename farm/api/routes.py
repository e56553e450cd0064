"""What a route says of itself: enough to serve it, to guard it and to document it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel


class Access(StrEnum):
    """Who may use a route."""

    OPEN = "open"
    ADMIN = "admin"
    AGENT = "agent"
    LIVE = "live"
    """Admins, and who has a link that opens just this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter in the query or a header."""

    name: str
    description: str
    type: str = "string"
    """As JSON Schema names it."""
    where: Literal["query", "header"] = "query"
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One way a route answers."""

    status: HTTPStatus = HTTPStatus.OK
    description: str = "Done."
    model: type[BaseModel] | None = None
    media_types: tuple[str, ...] = ("application/json",)
    """Of no meaning without a body."""
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    summary: str
    access: Access
    answers: tuple[Answer, ...]
    parameters: tuple[Parameter, ...] = ()
    takes_body: bool = False
    body: type[BaseModel] | None = None
    """With `takes_body`: what it is; None is text or bytes, checked further in."""
    body_may_be_shorter: bool = False
    """Other objects are taken too, and filled in."""
    body_may_be_left_out: bool = False
    body_media_types: tuple[str, ...] = ("application/json",)
    other_bodies: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    """By media type: what else is taken."""

    @property
    def operation_id(self) -> str:
        """The handler's name, which tells the operations apart."""
        return getattr(self.handler, "__name__", self.path)


ROUTES = web.AppKey("routes", dict[tuple[str, str], Route])


def add_routes(app: web.Application, routes: tuple[Route, ...]) -> None:
    """Serve the routes, and remember them for admission and documentation."""
    table: dict[tuple[str, str], Route] = {}
    for route in routes:
        app.router.add_route(route.method, route.path, route.handler)
        table[route.method, route.path] = route
    app[ROUTES] = table


def access_of(request: web.Request) -> Access:
    """Tell who may use what is asked for; what no route has is for admins, who learn that so."""
    route = route_of(request)
    return Access.ADMIN if route is None else route.access


def route_of(request: web.Request) -> Route | None:
    """Return what is known of the route that is asked for."""
    resource = request.match_info.route.resource
    if resource is None:
        return None
    return request.app[ROUTES].get((request.method, resource.canonical))
