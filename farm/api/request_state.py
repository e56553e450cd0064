"""What the middlewares leave on a request for those further in."""

from dataclasses import dataclass

from aiohttp import web

from farm.api.live.links import Grant
from farm.core.admission import UNBOUNDED, Bounds
from farm.core.model import Namespace

REQUEST_ID = web.RequestKey("request_id", str)
PREPARED = web.RequestKey("prepared", bool)
"""The answer's head has been sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: the bearer of a token."""

    token_id: str
    scope: str
    """`admin` or `agent`."""
    namespace: Namespace
    """Where the token was made; an agent may serve others, see `namespaces`."""
    name: str = ""
    """The token's, for people."""
    bounds: Bounds = UNBOUNDED
    """Of an agent's."""

    @property
    def namespaces(self) -> frozenset[Namespace]:
        """All that the token is for."""
        return self.bounds.namespaces or frozenset({self.namespace})


PRINCIPAL = web.RequestKey("principal", Principal)
GRANT = web.RequestKey("grant", Grant)
"""What may be looked at; of routes with `Access.LIVE` only."""
