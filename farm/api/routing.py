"""`/v1/pools`, what waits for them, and `/v1/jobs/{id}/why`."""

from aiohttp import web

from farm.api.answers import answer
from farm.api.deps import deps_of, namespace_of
from farm.api.pool_views import pool_view, unserved_view, why_view
from farm.api.routes import Access, Answer, Route
from farm.protocol.resources import PoolList, UnservedList, WhyView


async def list_pools(request: web.Request) -> web.Response:
    """Return the pools of the namespace."""
    pools = await deps_of(request).explaining.pools(namespace_of(request))
    return answer(PoolList(items=tuple(map(pool_view, pools))))


async def list_unserved(request: web.Request) -> web.Response:
    """Return the jobs of the namespace that nobody can take now, and why."""
    deps = deps_of(request)
    found = await deps.explaining.unserved(namespace_of(request))
    now = deps.clock()
    return answer(UnservedList(items=tuple(unserved_view(one, now) for one in found)))


async def why_job(request: web.Request) -> web.Response:
    """Return why a job has not begun."""
    explaining = deps_of(request).explaining
    why = await explaining.why(namespace_of(request), request.match_info["job_id"])
    return answer(why_view(why))


ROUTES = (
    Route(
        method="GET",
        path="/v1/pools",
        handler=list_pools,
        summary="List the pools, and what a job would be told there now",
        access=Access.ADMIN,
        answers=(Answer(model=PoolList),),
    ),
    Route(
        method="GET",
        path="/v1/pools/unserved",
        handler=list_unserved,
        summary="List the jobs that nobody can take now, and why",
        access=Access.ADMIN,
        answers=(Answer(model=UnservedList),),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job_id}/why",
        handler=why_job,
        summary="Say why a job has not begun",
        access=Access.ADMIN,
        answers=(Answer(model=WhyView),),
    ),
)
