"""`/healthz` and `/readyz`: for whatever watches over the process."""

from http import HTTPStatus

from aiohttp import web

from farm.api.answers import answer
from farm.api.deps import deps_of
from farm.api.request_state import PRINCIPAL
from farm.api.routes import Access, Answer, Route
from farm.api.views import moment
from farm.protocol.resources import ReadyView


async def healthz(request: web.Request) -> web.Response:
    """Say that the process serves requests, and nothing else."""
    return web.Response(status=HTTPStatus.OK)


async def readyz(request: web.Request) -> web.Response:
    """Say whether the farm can work; why not, only to those with a token."""
    verdict = await deps_of(request).readiness.verdict()
    known = PRINCIPAL in request
    ready = verdict.reason is None
    return answer(
        ReadyView(
            ready=ready,
            reason=verdict.reason if known else None,
            checked_at=moment(verdict.at) if known else None,
        ),
        status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        handler=healthz,
        summary="Whether the process serves requests",
        access=Access.OPEN,
        answers=(Answer(description="It does.", empty=True),),
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=readyz,
        summary="Whether the farm can do its work; the reason only with a token",
        access=Access.OPEN,
        answers=(
            Answer(description="Ready.", model=ReadyView),
            Answer(
                status=HTTPStatus.SERVICE_UNAVAILABLE, description="Not ready.", model=ReadyView
            ),
        ),
    ),
)
