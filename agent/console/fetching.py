"""Requests of a flow: redirects judged one by one, cookies of its own, and an end to everything.

Each host is resolved and judged before it is connected to, and connected to at an address that was
judged, as a browser's egress proxy does it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from agent.console import bodies, urls
from agent.egress.policy import Policy
from agent.egress.resolving import Refused, Resolver, permitted, system_resolver
from agent.steps.failed import StepFailed, clean
from farm.protocol.failures import Reason
from farm.protocol.plan import BrowserOptions

USER_AGENT = "tabfarm/0.1"
MAX_REDIRECTS = 20
_CONNECT_S = 10.0
_HEAD_LIMIT = 64 * 1024
_CHUNK = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Not taken along to another origin."""
_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding"})


class NotSent(StepFailed):
    """A request that has not left: nothing can have come of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as a step words it."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came at the end of all redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    """By name, in lower case; what is there twice is joined by commas."""
    body: bytes

    @property
    def content_type(self) -> str:
        """The Content-Type; empty where there is none."""
        return self.headers.get("content-type", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client holds to."""

    max_bytes: int
    """Of one body, as it is sent and as it is decoded."""


class Client:
    """One attempt's way to the network; made by `client`."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        reach: "Reach",
        limits: Limits,
        may_act: Callable[[], bool],
    ) -> None:
        self._session = session
        self._reach = reach
        self._limits = limits
        self._may_act = may_act

    async def fetch(self, ask: Ask) -> Answer:
        """Ask, and follow where it leads.

        Raises:
            NotSent: `egress_denied` or `navigation_failed`, before anything was sent.
            StepFailed: The same of a redirect; `navigation_failed` for what broke, is too long,
                or leads on for ever.
        """
        for turn in range(MAX_REDIRECTS + 1):
            try:
                await self._permit(ask.url)
                outcome = await self._one(ask)
            except NotSent as failure:
                if turn:  # what led here was sent
                    raise StepFailed(failure.reason, failure.detail) from None
                raise
            if isinstance(outcome, Answer):
                return outcome
            ask = outcome
        raise StepFailed(
            Reason.NAVIGATION_FAILED, clean(f"more than {MAX_REDIRECTS} redirects, to {ask.url}")
        )

    async def _permit(self, url: str) -> None:
        if urls.scheme(url) not in ("http", "https"):
            raise NotSent(Reason.NAVIGATION_FAILED, clean(f"it leads to {url}"))
        if not self._may_act():
            raise NotSent(Reason.AGENT_LOST, "the farm may have taken the agent for gone")
        try:
            await self._reach.permit(URL(url, encoded=True))
        except Refused as refused:
            place = _place(url)
            if refused.unreachable:
                raise NotSent(
                    Reason.NAVIGATION_FAILED,
                    clean(f"nothing answers at {place}: {refused.reason}"),
                ) from None
            raise NotSent(
                Reason.EGRESS_DENIED,
                clean(f"{place} may not be reached from here: {refused.reason}"),
            ) from None

    async def _one(self, ask: Ask) -> "Answer | Ask":
        try:
            async with self._session.request(
                ask.method,
                URL(ask.url, encoded=True),
                headers=dict(ask.headers),
                data=ask.body,
                allow_redirects=False,
            ) as response:
                location = response.headers.get("Location")
                if response.status in _REDIRECTS and location is not None:
                    return _led(ask, response.status, location)
                return Answer(
                    url=ask.url,
                    status=response.status,
                    headers=_joined(response.headers.items()),
                    body=await self._body(response, ask.url),
                )
        except aiohttp.ClientConnectorError as error:
            raise NotSent(
                Reason.NAVIGATION_FAILED, clean(f"nothing answers at {_place(ask.url)}: {error}")
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise StepFailed(Reason.NAVIGATION_FAILED, clean(f"{ask.url}: {said}")) from None

    async def _body(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        encoding = response.headers.get("Content-Encoding", "")
        chunks = self._alive(response.content.iter_chunked(_CHUNK))
        return await bodies.read(chunks, encoding, most=self._limits.max_bytes, url=url)

    async def _alive(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if not self._may_act():
                raise StepFailed(Reason.AGENT_LOST, "the farm may have taken the agent for gone")
            yield chunk


class Reach(AbstractResolver):
    """The addresses the policy has opened; nothing else can be connected to."""

    def __init__(self, policy: Policy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver
        self._open: dict[tuple[str, int], Sequence[str]] = {}

    async def permit(self, url: URL) -> None:
        """Resolve and judge a URL's host.

        Raises:
            Refused: If it may not be reached, or there is nothing to be reached.
        """
        host, port = url.raw_host, url.port
        if not host or port is None:
            raise Refused("it has no host", unreachable=True)
        self._open[host, port] = await permitted(
            host, port, resolver=self._resolver, policy=lambda: self._policy
        )

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """See `AbstractResolver`: what was judged, and nothing that is resolved anew."""
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._open.get((host, port), ())
        ]

    async def close(self) -> None:
        """See `AbstractResolver`."""


@asynccontextmanager
async def client(
    policy: Policy,
    options: BrowserOptions,
    limits: Limits,
    *,
    may_act: Callable[[], bool] = lambda: True,
    resolver: Resolver = system_resolver,
) -> AsyncIterator[Client]:
    """Make the client of one attempt; its cookies and connections end with the body.

    Args:
        policy: Where it may go.
        options: How it shows itself: user agent and language.
        limits: What it holds to.
        may_act: Whether the farm can't have taken us for gone; while it says no, nothing is sent.
        resolver: Looks names up.
    """
    reach = Reach(policy, resolver)
    language = (options.locale or "en-US").replace("_", "-")
    headers = {
        "User-Agent": options.user_agent or USER_AGENT,
        "Accept": _PAGE,
        "Accept-Language": f"{language},{language.partition('-')[0]};q=0.9",
        "Accept-Encoding": bodies.ACCEPTED,
    }
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=reach, use_dns_cache=False, limit=8),
        cookie_jar=aiohttp.CookieJar(unsafe=True, quote_cookie=False),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        auto_decompress=False,
        max_line_size=_HEAD_LIMIT,
        max_field_size=_HEAD_LIMIT,
    ) as session:
        yield Client(session, reach, limits, may_act)


def _led(ask: Ask, status: int, location: str) -> Ask:
    """Return what is asked next, by the rules of the Fetch standard."""
    written = location.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    url = urls.join(ask.url, written)
    if url is None:
        raise StepFailed(Reason.NAVIGATION_FAILED, clean(f"{ask.url} leads to {written!r}: no URL"))
    _, mark, fragment = ask.url.partition("#")
    if mark and "#" not in url:
        url = f"{url}#{fragment}"
    headers = dict(ask.headers)
    if urls.origin(url) != urls.origin(ask.url):
        headers = {k: v for k, v in headers.items() if k.lower() not in _SECRET}
    turned = ask.method == "POST" if status in (301, 302) else ask.method not in ("GET", "HEAD")
    if status in (301, 302, 303) and turned:
        headers = {k: v for k, v in headers.items() if k.lower() not in _OF_THE_BODY}
        return Ask(url=url, headers=headers)
    return replace(ask, url=url, headers=headers)


def _joined(pairs: Any) -> dict[str, str]:  # noqa: ANN401 - the items of a multidict
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _place(url: str) -> str:
    parts = URL(url, encoded=True)
    return f"{parts.raw_host}:{parts.port}"
