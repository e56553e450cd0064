"""Server-sent events, one client at a time."""

import asyncio

from aiohttp import web

from farm.api.watching import gone
from farm.errors import InvalidInputError

HEARTBEAT_S = 15.0
_WRITE_S = 30.0
"""A client that takes nothing for this long is let go."""


async def event_stream(request: web.Request) -> "EventStream":
    """Begin to answer with events."""
    response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    return EventStream(request, response)


class EventStream:
    """What is sent to one client.

    Each way to send raises ConnectionError or TimeoutError where the client has gone, or takes
    nothing.
    """

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self.response = response
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._told_at = self._loop.time()

    async def tell(self, event: str, data: str, *, number: int | None = None) -> None:
        """Send one event; by its number the client may go on after it on another connection."""
        named = "" if number is None else f"id: {number}\n"
        await self._write(f"{named}event: {event}\ndata: {data}")

    async def beat(self, every_s: float) -> None:
        """Show that the connection lives, if nothing else has for so long."""
        if gone(self._request):
            raise ConnectionResetError("the client has gone")
        if self._loop.time() - self._told_at >= every_s:
            await self._write(": still here")

    async def _write(self, text: str) -> None:
        async with asyncio.timeout(_WRITE_S):
            await self.response.write(f"{text}\n\n".encode())
        self._told_at = self._loop.time()


def last_event_id(request: web.Request) -> int | None:
    """Return the number of the last event the client has; the header is the browser's own way.

    Raises:
        InvalidInputError: If it is none.
    """
    text = request.headers.get("Last-Event-ID") or request.query.get("after")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInputError(
            f"the last event's id is a whole number, not {text!r}", parameter="after"
        )
    return int(text)
