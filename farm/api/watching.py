"""Following a job's history as it is written, for whoever watches."""

from aiohttp import web

SLICE_S = 1.0
"""A client that went away is noticed within this."""
SAFETY_POLL_S = 5.0
"""The ledger is read again after this, should a change have been made without telling the feed."""


def gone(request: web.BaseRequest) -> bool:
    """Tell whether the client has closed the connection."""
    return request.transport is None or request.transport.is_closing()
