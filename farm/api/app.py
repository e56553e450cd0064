"""Puts the HTTP API together."""

import secrets
from collections.abc import Iterable

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from farm.api import (
    cluster_events,
    delivery,
    deployments,
    events,
    files,
    health,
    identities,
    interventions,
    jobs,
    leaving,
    lending,
    metrics,
    namespaces,
    openapi,
    pool,
    results,
    routing,
    tokens,
    uploads,
)
from farm.api.auth import admission
from farm.api.deps import DEPS, Deps
from farm.api.errors import problems
from farm.api.live.links import LiveLinks
from farm.api.queries import known_keys
from farm.api.request_state import PREPARED, REQUEST_ID
from farm.api.routes import Route, add_routes

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The largest body but for artifacts, which are streamed: a job file of its largest size as a text
in JSON, with params. Files have a limit of their own."""

API: tuple[Route, ...] = (
    *jobs.ROUTES,
    *interventions.ROUTES,
    *results.ROUTES,
    *events.ROUTES,
    *files.ROUTES,
    *pool.ROUTES,
    *cluster_events.ROUTES,
    *leaving.ROUTES,
    *deployments.ROUTES,
    *routing.ROUTES,
    *delivery.ROUTES,
    *tokens.ROUTES,
    *namespaces.ROUTES,
    *uploads.ROUTES,
    *identities.ROUTES,
    *lending.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *openapi.ROUTES,
)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

log = structlog.get_logger(__name__)


def build_app(
    *,
    deps: Deps,
    allowed_hosts: Iterable[str] = (),
    more_routes: tuple[Route, ...] = (),
    live_links: LiveLinks | None = None,
) -> web.Application:
    """Return the application. Serve it with `ApiRunner`.

    `allowed_hosts` are the names, beside loopback, under which requests may come. `more_routes`
    pass the same admission and appear in the same description; the agents' WebSocket is one.
    `live_links` open those of them that people watch tabs by.
    """
    app = web.Application(
        middlewares=[
            _request_scope,
            problems,
            admission(deps.tokens, allowed_hosts, live_links),
            known_keys,
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    app[DEPS] = deps
    add_routes(app, (*API, *more_routes))
    app.on_response_prepare.append(_finish_head)
    app.on_shutdown.append(_let_go)
    return app


@web.middleware
async def _request_scope(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Name the request, bind the name to whatever is logged meanwhile, and log how it ended."""
    request_id = secrets.token_hex(8)
    request[REQUEST_ID] = request_id
    with structlog.contextvars.bound_contextvars(request_id=request_id):
        response = await handler(request)
        log.debug(
            "request.served", method=request.method, path=request.path, status=response.status
        )
        return response


async def _finish_head(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
    if (request_id := request.get(REQUEST_ID)) is not None:
        response.headers["X-Request-ID"] = request_id
    request[PREPARED] = True


async def _let_go(app: web.Application) -> None:
    """End the streams and long polls, so that the server need not wait for them."""
    app[DEPS].feed.close()
    app[DEPS].events.close()
