"""`/v1/jobs/{id}/events`: a job's history as server-sent events."""

import asyncio

from aiohttp import web

from farm.api.deps import Deps, deps_of, namespace_of
from farm.api.queries import choice_in_query
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.views import event_view, job_view
from farm.api.watching import SAFETY_POLL_S, SLICE_S, gone, history
from farm.core.job_states import AT_REST
from farm.core.model import Namespace
from farm.errors import InvalidInputError
from farm.jobs.feed import Subscription
from farm.protocol.resources import EventView
from farm.stores.records import Job

HEARTBEAT_S = 15.0
_WRITE_S = 30.0
"""A client that takes nothing for this long is let go."""


class _Stream:
    """What has been told to one client."""

    def __init__(self, request: web.Request, response: web.StreamResponse, after: int) -> None:
        self._request = request
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._told_at = self._loop.time()
        self.after = after

    async def tell(self, event: EventView) -> None:
        """Send one event."""
        await self._write(f"id: {event.seq}\nevent: {event.type}\ndata: {event.model_dump_json()}")
        self.after = event.seq

    async def end(self, data: str) -> None:
        """Send the event after which there are no more."""
        await self._write(f"event: end\ndata: {data}")

    async def beat(self) -> None:
        """Show that the connection lives, if nothing else has; raise if it does not."""
        if gone(self._request):
            raise ConnectionResetError("the client has gone")
        if self._loop.time() - self._told_at >= HEARTBEAT_S:
            await self._write(": still here")

    async def _write(self, text: str) -> None:
        async with asyncio.timeout(_WRITE_S):
            await self._response.write(f"{text}\n\n".encode())
        self._told_at = self._loop.time()


async def stream_events(request: web.Request) -> web.StreamResponse:
    """Send a job's history from where the client was, then what comes, until the job is at rest."""
    deps, namespace, job_id = deps_of(request), namespace_of(request), request.match_info["job_id"]
    after = _after(request)
    follow = choice_in_query(request, "follow", ("true", "false")) != "false"
    with deps.feed.subscribe(job_id) as watcher:
        await deps.ledger.job(namespace, job_id)
        response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        await response.prepare(request)
        stream = _Stream(request, response, after)
        try:
            await _follow(deps, namespace, job_id, watcher, stream, follow=follow)
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            return response  # the client has gone, or takes nothing
    return response


async def _follow(
    deps: Deps,
    namespace: Namespace,
    job_id: str,
    watcher: Subscription,
    stream: _Stream,
    *,
    follow: bool,
) -> None:
    """Tell, wait and tell again (P7).

    The job is read before its history: what brought it to rest is then in the history too.
    """
    while not deps.feed.closed:
        generation = watcher.generation()
        job = await deps.ledger.job(namespace, job_id)
        async for event in history(deps.ledger, job_id, stream.after):
            await stream.tell(event_view(event))
        if job.state in AT_REST or not follow:
            await stream.end(_last_words(job, deps))
            return
        await _wait(watcher, generation, stream)


async def _wait(watcher: Subscription, generation: int, stream: _Stream) -> None:
    for _ in range(round(SAFETY_POLL_S / SLICE_S)):
        if await watcher.changed_since(generation, within_s=SLICE_S):
            return
        await stream.beat()


def _last_words(job: Job, deps: Deps) -> str:
    return job_view(job, deps.dispatcher).model_dump_json()


def _after(request: web.Request) -> int:
    """Return the number of the last event the client has; the header is the browser's own way."""
    text = request.headers.get("Last-Event-ID") or request.query.get("after") or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInputError(
            f"the last event's id is a whole number, not {text!r}", parameter="after"
        )
    return int(text)


ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs/{job_id}/events",
        handler=stream_events,
        summary="Follow a job's history",
        access=Access.ADMIN,
        parameters=(
            Parameter(
                name="Last-Event-ID",
                where="header",
                description="Go on after this event.",
                type="integer",
            ),
            Parameter(name="after", description="The same, in the query.", type="integer"),
            Parameter(name="follow", description="`false`: only what is there now."),
        ),
        answers=(
            Answer(
                description="Events whose data is an EventView; `end`, with the job, is the last.",
                media_types=("text/event-stream",),
                model=EventView,
            ),
        ),
    ),
)
