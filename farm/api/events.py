"""`/v1/jobs/{id}/events`: a job's history as server-sent events."""

from aiohttp import web

from farm.api.deps import Deps, deps_of, namespace_of
from farm.api.queries import choice_in_query
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.streaming import HEARTBEAT_S, EventStream, event_stream, last_event_id
from farm.api.views import event_view, job_view
from farm.api.watching import SAFETY_POLL_S, SLICE_S
from farm.core.job_states import AT_REST
from farm.core.model import Namespace
from farm.jobs.feed import Subscription
from farm.protocol.resources import EventView


async def stream_events(request: web.Request) -> web.StreamResponse:
    """Send a job's history from where the client was, then what comes, until the job is at rest."""
    deps, namespace, job_id = deps_of(request), namespace_of(request), request.match_info["job_id"]
    after = last_event_id(request) or 0
    follow = choice_in_query(request, "follow", ("true", "false")) != "false"
    with deps.feed.subscribe(job_id) as watcher:
        await deps.jobs.job(namespace, job_id)
        stream = await event_stream(request)
        told = _Told(stream, after)
        try:
            await _follow(deps, namespace, job_id, watcher, told, follow=follow)
            await stream.response.write_eof()
        except (ConnectionError, TimeoutError):
            pass  # the client has gone, or takes nothing
    return stream.response


class _Told:
    """What has been told to one client."""

    def __init__(self, stream: EventStream, after: int) -> None:
        self.stream = stream
        self.after = after

    async def tell(self, event: EventView) -> None:
        """Send one event."""
        await self.stream.tell(event.type, event.model_dump_json(), number=event.seq)
        self.after = event.seq


async def _follow(
    deps: Deps,
    namespace: Namespace,
    job_id: str,
    watcher: Subscription,
    told: _Told,
    *,
    follow: bool,
) -> None:
    """Tell, wait and tell again (P7).

    The job is read before its history: what brought it to rest is then in the history too.
    """
    while not deps.feed.closed:
        generation = watcher.generation()
        job = await deps.jobs.job(namespace, job_id)
        async for event in deps.jobs.history(namespace, job_id, after=told.after):
            await told.tell(event_view(event))
        if job.state in AT_REST or not follow:
            last_words = job_view(job, await deps.readings.of_one(job))
            await told.stream.tell("end", last_words.model_dump_json())
            return
        await _wait(watcher, generation, told.stream)


async def _wait(watcher: Subscription, generation: int, stream: EventStream) -> None:
    for _ in range(round(SAFETY_POLL_S / SLICE_S)):
        if await watcher.changed_since(generation, within_s=SLICE_S):
            return
        await stream.beat(HEARTBEAT_S)


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
