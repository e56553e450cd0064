"""Following a job's history as it is written, for whoever watches."""

from collections.abc import AsyncIterator

from aiohttp import web

from farm.stores.ports.ledger import Ledger
from farm.stores.records import JobEvent

SLICE_S = 1.0
"""A client that went away is noticed within this."""
SAFETY_POLL_S = 5.0
"""The ledger is read again after this, should a change have been made without telling the feed."""
PAGE = 500
"""So many lines are read at a time."""


def gone(request: web.BaseRequest) -> bool:
    """Tell whether the client has closed the connection."""
    return request.transport is None or request.transport.is_closing()


async def history(ledger: Ledger, job_id: str, after: int = 0) -> AsyncIterator[JobEvent]:
    """Yield what a job's history has now, after a number."""
    while page := await ledger.events(job_id, after=after, limit=PAGE):
        for event in page:
            yield event
        after = page[-1].seq
