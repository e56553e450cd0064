"""Who may come in: bearer tokens in the header, known hosts, no foreign pages (P17)."""

import hashlib
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from farm.api.live.links import COOKIES, Grant, LiveLinks
from farm.api.request_state import GRANT, PRINCIPAL, Principal
from farm.api.routes import Access, access_of
from farm.clock import Clock
from farm.core.admission import UNBOUNDED, Bounds
from farm.core.model import Instant, Namespace
from farm.errors import ForbiddenError, UnauthorizedError
from farm.stores.ports.ledger import Ledger
from farm.stores.records import TokenRecord

_CACHE_SIZE = 1024
_CACHE_S = 10.0
"""How long a revocation by another process may take to be noticed, where nobody tells of it."""
_LOOPBACK_NAMES = frozenset({"localhost"})


def mint(
    *, scope: str, namespace: Namespace, name: str, now: Instant, bounds: Bounds = UNBOUNDED
) -> tuple[TokenRecord, str]:
    """Make a token: what is to be remembered of it, and its secret, which is not."""
    secret = f"tf_{secrets.token_urlsafe(32)}"
    record = TokenRecord(
        token_id=f"tok_{secrets.token_hex(8)}",
        sha256=hash_of(secret),
        scope=scope,
        namespace=namespace,
        name=name,
        created_at=now,
        bounds=bounds,
    )
    return record, secret


def hash_of(secret: str) -> str:
    """Return what a token is looked up by.

    Comparing hashes of what a stranger sent tells him nothing about ours, however long it takes.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class TokenBook:
    """The tokens of the ledger, with those seen lately at hand."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._seen: OrderedDict[str, tuple[Instant, Principal]] = OrderedDict()
        self._revocations = 0
        self._lent: dict[str, Principal] = {}
        self.tell_revoked: Callable[[str], None] = lambda token_id: None
        """Lets other coordinators know, where there are any."""

    async def principal(self, secret: str) -> Principal | None:
        """Return who bears this token; None if it is unknown or revoked."""
        sha256 = hash_of(secret)
        if (lent := self._lent.get(sha256)) is not None:
            return lent
        now = self._clock()
        if (seen := self._seen.get(sha256)) is not None and 0 <= now - seen[0] < _CACHE_S:
            self._seen.move_to_end(sha256)
            return seen[1]
        self._seen.pop(sha256, None)
        revocations = self._revocations
        record = await self._ledger.token(sha256)
        if record is None:
            return None
        principal = Principal(
            token_id=record.token_id,
            scope=record.scope,
            namespace=record.namespace,
            name=record.name,
            bounds=record.bounds,
        )
        if revocations == self._revocations:  # else it may be the one revoked meanwhile
            self._seen[sha256] = (now, principal)
            while len(self._seen) > _CACHE_SIZE:
                self._seen.popitem(last=False)
        return principal

    async def add(
        self, *, scope: str, namespace: Namespace, name: str, bounds: Bounds = UNBOUNDED
    ) -> tuple[TokenRecord, str]:
        """Make and remember a token; return it with its secret."""
        record, secret = mint(
            scope=scope, namespace=namespace, name=name, now=self._clock(), bounds=bounds
        )
        await self._ledger.add_token(record)
        return record, secret

    @contextmanager
    def lend(self, *, scope: str, namespace: Namespace, name: str) -> Iterator[str]:
        """Make a token that opens something for as long as the block lasts; give its secret.

        It is written down nowhere, and opens nothing on other coordinators.
        """
        record, secret = mint(scope=scope, namespace=namespace, name=name, now=self._clock())
        self._lent[record.sha256] = Principal(
            token_id=record.token_id, scope=scope, namespace=namespace
        )
        try:
            yield secret
        finally:
            del self._lent[record.sha256]

    async def add_known(self, secret: str, *, scope: str, namespace: Namespace) -> None:
        """Remember a token whose secret somebody else has made, unless it is known."""
        if await self._ledger.token(hash_of(secret)) is None:
            record, _ = mint(scope=scope, namespace=namespace, name="preset", now=self._clock())
            await self._ledger.add_token(replace(record, sha256=hash_of(secret)))

    async def all(self, *, namespace: Namespace | None = None) -> Sequence[TokenRecord]:
        """Return the tokens that open something, with a namespace those that were made in it."""
        return await self._ledger.tokens(namespace=namespace)

    async def revoke(self, token_id: str, *, namespace: Namespace | None = None) -> None:
        """Let a token open nothing any more, here at once. Raises NotFoundError.

        With a namespace, only one that was made in it.
        """
        await self._ledger.revoke_token(token_id, now=self._clock(), namespace=namespace)
        self.forget(token_id)
        self.tell_revoked(token_id)

    def forget(self, token_id: str) -> None:
        """Look a token up anew: it has been revoked, here or by another coordinator."""
        self._revocations += 1
        for sha256 in [h for h, (_, who) in self._seen.items() if who.token_id == token_id]:
            del self._seen[sha256]


def admission(
    tokens: TokenBook, allowed_hosts: Iterable[str], links: LiveLinks | None = None
) -> Middleware:
    """Make the middleware every request passes.

    Closed by default: a path that no route has is refused without a token too. Routes that are
    open may be reached under any host name, as probes do by address.
    """
    hosts = frozenset(_host_name(host) for host in allowed_hosts) | _LOOPBACK_NAMES

    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        access = access_of(request)
        if access is not Access.OPEN and not _is_ours(request.host, hosts):
            raise web.HTTPMisdirectedRequest(
                text=f"the farm does not answer to the host name {_host_name(request.host)!r}"
            )
        _refuse_foreign_page(request)
        principal = await _identify(request, tokens)
        if access is Access.LIVE:
            request[GRANT] = _granted(request, principal, links)
        elif access is not Access.OPEN:
            _let_pass(principal, access)
        if principal is not None:
            request[PRINCIPAL] = principal
        return await handler(request)

    return admit


async def _identify(request: web.Request, tokens: TokenBook) -> Principal | None:
    scheme, _, secret = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        return None
    return await tokens.principal(secret.strip())


def _let_pass(principal: Principal | None, access: Access) -> None:
    if principal is None:
        raise UnauthorizedError("give a token of this farm as 'Authorization: Bearer …'")
    if principal.scope != access:
        raise ForbiddenError(f"a token of scope {principal.scope!r} does not open this")


def _granted(request: web.Request, principal: Principal | None, links: LiveLinks | None) -> Grant:
    """Return what may be looked at: all of the namespace by a token, else what the link is for."""
    if principal is not None:
        _let_pass(principal, Access.ADMIN)
        return Grant(namespace=principal.namespace, context=None, mode="control", name="admin")
    context = request.match_info.get("context")
    for secret in _links_of(request, for_wall=context is None):
        grant = None if links is None else links.read(secret)
        if grant is not None and (
            grant.context is None if context is None else grant.opens(context)
        ):
            return grant
    raise UnauthorizedError(
        "this link has expired or is not for this; `farm live` makes one, and so does "
        "POST /v1/live-links"
    )


def _links_of(request: web.Request, *, for_wall: bool) -> list[str]:
    """Return the links that come with a request, what is for less first."""
    if "link" in request.query:
        return [request.query["link"]]
    names = (COOKIES[True],) if for_wall else (COOKIES[False], COOKIES[True])
    return [request.cookies[name] for name in names if name in request.cookies]


def _refuse_foreign_page(request: web.Request) -> None:
    """Refuse a WebSocket that a page of another origin opens; browsers let every page try."""
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None or request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        return
    if urlsplit(origin).netloc.lower() != request.host.lower():
        raise ForbiddenError("a page of another origin may not open this")


def _is_ours(host: str, allowed: frozenset[str]) -> bool:
    name = _host_name(host)
    if name in allowed:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """Return the name in a Host header, without port, brackets and final dot."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.removesuffix(".")
