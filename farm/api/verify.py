"""`POST /v1/verify`: the farm proves that it keeps what its pool promises."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import BaseModel

from farm.api.deps import deps_of
from farm.api.routes import Access, Answer, Route
from farm.api.watching import SLICE_S, gone
from farm.protocol.resources import PointView, VerifyLine
from farm.verify import Verifier

LINES = "application/x-ndjson"
_WRITE_S = 5.0
"""A client that takes nothing for so long is let go, lest the run take longer than it may."""

Prove = Callable[[Callable[[PointView], Awaitable[None]]], Awaitable[None]]


def verify_route(verifier: Verifier) -> Route:
    """Return the route that verifies, for `build_app(more_routes=...)`."""

    async def verify(request: web.Request) -> web.StreamResponse:
        verification = await verifier.begin(*_way_in(request))
        response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
        response.content_type = LINES
        with contextlib.suppress(ConnectionError, TimeoutError):  # the client has gone
            try:
                await response.prepare(request)
                await _prove(request, response, verification.run)
            finally:
                end = await verification.end()
            await _write(response, end)
            await response.write_eof()
        return response

    return Route(
        method="POST",
        path="/v1/verify",
        handler=verify,
        summary="Prove what the pool promises",
        access=Access.ADMIN,
        answers=(
            Answer(
                description="A line for each point as it is settled, then one that ends.",
                media_types=(LINES,),
                model=VerifyLine,
            ),
        ),
    )


async def _prove(request: web.Request, response: web.StreamResponse, prove: Prove) -> None:
    """Prove, and tell each point, while there is somebody to be told.

    Raises:
        ConnectionResetError: If the client has gone, or the farm stops.
    """

    async def tell(point: PointView) -> None:
        await _write(response, point)

    try:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(_watch(request), name="is the client there")
            await prove(tell)
            watcher.cancel()
    except* (ConnectionError, TimeoutError):
        raise ConnectionResetError("the client has gone") from None


async def _watch(request: web.Request) -> None:
    feed = deps_of(request).feed
    while True:
        if gone(request) or feed.closed:
            raise ConnectionResetError("the client has gone, or the farm stops")
        await asyncio.sleep(SLICE_S)


async def _write(response: web.StreamResponse, line: BaseModel) -> None:
    async with asyncio.timeout(_WRITE_S):
        await response.write(f"{line.model_dump_json()}\n".encode())


def _way_in(request: web.Request) -> tuple[str, str]:
    """Return where agents reach this coordinator, from itself: as this request did.

    Under the same host name, which has been let in already.
    """
    if request.transport is None:
        raise ConnectionResetError("the client has gone")
    host, port = request.transport.get_extra_info("sockname")[:2]
    address = f"[{host}]" if ":" in host else host
    return f"http://{address}:{port}/v1/agent", request.host
