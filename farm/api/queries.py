"""What may stand in the query: a key nobody reads is a typing error, as is a word nobody knows."""

from collections.abc import Collection, Iterable

from aiohttp import web
from aiohttp.typedefs import Handler

from farm.api.routes import Access, route_of
from farm.errors import InvalidInputError
from farm.protocol.nearest import nearest


@web.middleware
async def known_keys(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a query key that the route does not have.

    Raises:
        InvalidInputError: Naming the key and the nearest one that there is.
    """
    route = route_of(request)
    # Probes may be given whatever a balancer likes, agents what a later farm reads.
    if route is not None and route.access is Access.ADMIN and request.method == "GET":
        known = [p.name for p in route.parameters if p.where == "query"]
        for key in request.query:
            if key not in known:
                raise _unknown(f"there is no query key {_shown(key)} here", key, key, known)
    return await handler(request)


def choice_in_query(request: web.Request, name: str, among: Collection[str]) -> str | None:
    """Return a word of the query, or None where it is not there.

    Raises:
        InvalidInputError: Naming the key, the words that there are and the nearest of them.
    """
    text = request.query.get(name)
    if text is None or text in among:
        return text
    detail = f"{name} is one of {', '.join(among)}, not {_shown(text)}"
    raise _unknown(detail, name, text, among)


def _unknown(detail: str, key: str, word: str, known: Iterable[str]) -> InvalidInputError:
    near = nearest(word, known)
    hint = f"; did you mean {near}?" if near else ""
    return InvalidInputError(detail + hint, parameter=key[:64], suggestion=near)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
