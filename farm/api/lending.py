"""`/v1/attempts/{id}/identity`: what an agent is lent for an attempt, and gives back."""

from aiohttp import web

from farm.api.answers import answer, large_body_of
from farm.api.deps import deps_of
from farm.api.routes import Access, Answer, Route
from farm.api.uploads import TOKEN_PARAMETER, attempt_of, token_of
from farm.protocol.identities import Lent, StateSaved, StorageState


async def lend_identity(request: web.Request) -> web.Response:
    """Give an agent the state and the proxy of an attempt that runs on it, under its lease (P8)."""
    token, (attempt, _) = token_of(request), await attempt_of(request, deps_of(request))
    lent = await deps_of(request).identities.lend(attempt.attempt_id, token)
    return answer(lent)


async def save_identity(request: web.Request) -> web.Response:
    """Keep what the window of an attempt holds at its end, under its lease (P8)."""
    token, (attempt, _) = token_of(request), await attempt_of(request, deps_of(request))
    book = deps_of(request).identities
    state = await large_body_of(request, StorageState, max_bytes=book.max_bytes)
    return answer(StateSaved(version=await book.save(attempt.attempt_id, token, state)))


ROUTES = (
    Route(
        method="GET",
        path="/v1/attempts/{attempt_id}/identity",
        handler=lend_identity,
        summary="Ask for what a running attempt is lent",
        access=Access.AGENT,
        parameters=(TOKEN_PARAMETER,),
        answers=(Answer(description="In the clear.", model=Lent),),
    ),
    Route(
        method="PUT",
        path="/v1/attempts/{attempt_id}/identity",
        handler=save_identity,
        summary="Give back the state of an attempt's identity",
        access=Access.AGENT,
        parameters=(TOKEN_PARAMETER,),
        takes_body=True,
        body=StorageState,
        answers=(Answer(description="Kept, whole.", model=StateSaved),),
    ),
)
