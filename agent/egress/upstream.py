"""A proxy further out, through which a window's or a flow's requests go. Pure.

The proxy resolves names, not we: a lookup here would tell this network's resolver where pages go,
and may well find another address. So a host is judged by what it is called before it is handed on:
the names of cloud metadata, this machine's own names, and addresses by the same rules as without a
proxy. What a name leads to beyond the proxy is for the proxy to judge.
"""

import base64
import ipaddress
from dataclasses import dataclass, field
from typing import Literal, cast
from urllib.parse import urlsplit

from agent.egress.policy import Allowed, Policy, parse_entry, plain_host
from agent.egress.resolving import Refused
from agent.ports import ProxyFault
from farm.protocol.identities import Credentials, ProxyRoute

Scheme = Literal["http", "https", "socks5"]
_THIS_MACHINE = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where the proxy is, what it is told, and what goes past it."""

    scheme: Scheme
    host: str
    port: int
    credentials: Credentials | None = field(default=None, repr=False)
    domains: tuple[str, ...] = ()
    """`.example.com`: hosts below these go past it."""
    past: tuple[Allowed, ...] = ()

    @classmethod
    def of(cls, route: ProxyRoute) -> "Upstream":
        """Read what an agent was lent.

        Raises:
            ValueError: If it means nothing.
        """
        parts = urlsplit(route.server)
        if parts.scheme not in ("http", "https", "socks5") or not parts.hostname or not parts.port:
            raise ValueError("the proxy's server is no URL of one")
        return cls(
            scheme=cast("Scheme", parts.scheme),
            host=parts.hostname,
            port=parts.port,
            credentials=route.credentials,
            domains=tuple(plain_host(e[1:]) for e in route.bypass if e.startswith("*.")),
            past=tuple(parse_entry(e) for e in route.bypass if not e.startswith("*.")),
        )

    def is_passed(self, host: str, port: int) -> bool:
        """Tell whether requests for a host go past the proxy."""
        plain = plain_host(host)
        if any(plain.endswith(domain) for domain in self.domains):
            return True
        addresses = [address] if (address := _address(plain)) is not None else []
        return any(entry.covers(plain, port, addresses) for entry in self.past)

    @property
    def authorization(self) -> str | None:
        """The value of `Proxy-Authorization`, for a proxy that speaks HTTP."""
        if self.credentials is None:
            return None
        pair = f"{self.credentials.username}:{self.credentials.password}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"


def unreachable(upstream: Upstream, why: str) -> Refused:
    """Return the refusal of a proxy that is not there, or is none."""
    return Refused(
        f"the proxy {upstream.host}:{upstream.port} can't be used: {why}",
        unreachable=True,
        proxy=ProxyFault.UNREACHABLE,
    )


def auth_refused(upstream: Upstream) -> Refused:
    """Return the refusal of a proxy that does not take what it is told."""
    return Refused(
        f"the proxy {upstream.host}:{upstream.port} does not take this username and password",
        unreachable=True,
        proxy=ProxyFault.AUTH_REFUSED,
    )


def refuses(policy: Policy, host: str, port: int) -> str | None:
    """Return why a host must not be handed to a proxy, or None if it may."""
    plain = plain_host(host)
    if (reason := policy.refuses_name(plain)) is not None:
        return reason
    if plain == "localhost" or plain.endswith(".localhost"):
        return policy.refuses(plain, port, _THIS_MACHINE)
    return None if _address(plain) is None else policy.refuses(plain, port, plain)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
