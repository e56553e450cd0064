"""`GET /v1/events`: what happens in the farm, as server-sent events.

A snapshot first, then what has happened since. Who reads too slowly, or comes back too late, is
told that there is a gap, and gets another snapshot.
"""

import asyncio
import contextlib

from aiohttp import web

from farm.api import pool
from farm.api.deps import Deps, deps_of, namespace_of, operator_of
from farm.api.queries import choice_in_query
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.streaming import HEARTBEAT_S, EventStream, event_stream, last_event_id
from farm.api.views import moment
from farm.api.watching import SLICE_S
from farm.core.model import Namespace
from farm.protocol.resources import ClusterEventView, ClusterGap, ClusterSnapshot
from farm.stores.ports.cluster_events import ClusterEvent

PAGE = 100
"""So many events are written before it is asked again what there is."""
CATCH_UP_S = 2.0
"""What is not known here after that was never told, or is lost."""


async def stream_cluster_events(request: web.Request) -> web.StreamResponse:
    """Send what there is, then what happens in the namespace, until the client goes."""
    deps, namespace = deps_of(request), namespace_of(request)
    after = last_event_id(request)
    follow = choice_in_query(request, "follow", ("true", "false")) != "false"
    operator = operator_of(request)
    # Before the answer begins, so that a registry that does not answer is a 503.
    first = await _snapshot(deps, namespace, operator=operator) if after is None else None
    stream = await event_stream(request)
    try:
        reader = _Reader(deps, namespace, stream, operator=operator)
        await reader.begin(first, after)
        while follow and not deps.events.closed:
            await reader.wait()
            await reader.tell_all()
        await stream.response.write_eof()
    except (ConnectionError, TimeoutError):
        pass  # the client has gone, or takes nothing
    return stream.response


class _Reader:
    """One client, and up to where it has been told."""

    def __init__(
        self, deps: Deps, namespace: Namespace, stream: EventStream, *, operator: bool
    ) -> None:
        self._deps = deps
        self._namespace = namespace
        self._stream = stream
        self._operator = operator
        self._until = 0

    async def begin(self, first: ClusterSnapshot | None, after: int | None) -> None:
        """Tell what there is, or what has happened after what the client has."""
        if first is not None:
            await self._tell_snapshot(first)
        elif after is not None:
            self._until = after
            await self._catch_up(after)
        await self.tell_all()

    async def _catch_up(self, after: int) -> None:
        """Know as much as the coordinator that the client comes from; that takes a moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                await self._deps.events.changed_since(after - 1)

    async def tell_all(self) -> None:
        """Tell what has happened since, to its end."""
        events = self._deps.events
        while not events.closed:
            told = events.read(self._namespace, self._until, limit=PAGE)
            if told is None:
                gap = ClusterGap(after=self._until)
                await self._stream.tell("gap", gap.model_dump_json())
                there = await _snapshot(self._deps, self._namespace, operator=self._operator)
                await self._tell_snapshot(there)
                continue
            for event in told.events:
                view = _view(event)
                await self._stream.tell(event.kind, view.model_dump_json(), number=event.seq)
            self._until = told.until
            if not told.events:
                return

    async def wait(self) -> None:
        """Wait until something has happened, and show meanwhile that the connection lives."""
        while True:
            try:
                async with asyncio.timeout(SLICE_S):
                    await self._deps.events.changed_since(self._until)
            except TimeoutError:
                await self._stream.beat(HEARTBEAT_S)
            else:
                return

    async def _tell_snapshot(self, there: ClusterSnapshot) -> None:
        await self._stream.tell("snapshot", there.model_dump_json(), number=there.as_of)
        self._until = there.as_of


async def _snapshot(deps: Deps, namespace: Namespace, *, operator: bool) -> ClusterSnapshot:
    # The number first: what happens while the rest is read is told after it.
    as_of = deps.events.last()
    _, agents = await pool.agents_of(deps, namespace, operator=operator)
    return ClusterSnapshot(as_of=as_of, agents=agents)


def _view(event: ClusterEvent) -> ClusterEventView:
    return ClusterEventView(
        seq=event.seq, kind=event.kind, at=moment(event.at), data=dict(event.data)
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/events",
        handler=stream_cluster_events,
        summary="Follow what happens in the farm",
        access=Access.ADMIN,
        parameters=(
            Parameter(
                name="Last-Event-ID",
                where="header",
                description="Go on after this event, without a snapshot where that can be.",
                type="integer",
            ),
            Parameter(name="after", description="The same, in the query.", type="integer"),
            Parameter(name="follow", description="`false`: only what is there now."),
        ),
        answers=(
            Answer(
                description="`snapshot` with a ClusterSnapshot, then events named by their kind "
                "whose data is a ClusterEventView; `gap` where some are missing.",
                media_types=("text/event-stream",),
                model=ClusterEventView,
            ),
        ),
    ),
)
