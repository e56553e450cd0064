"""From a host to the addresses that may be connected to: resolved here, judged one by one.

Whoever connects does so to one of these addresses and resolves nothing again, so that a name
which leads elsewhere a moment later makes no difference.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

from agent.egress.policy import Policy
from agent.ports import ProxyFault

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses; raises OSError where there are none."""

_RESOLVE_TIMEOUT_S = 15.0


class Refused(Exception):  # noqa: N818 - ends one exchange, by an answer of our own
    """A request may not go where it wants, or nothing is there."""

    def __init__(
        self, reason: str, *, unreachable: bool = False, proxy: ProxyFault | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unreachable = unreachable
        self.proxy = proxy
        """It is a proxy further out that failed."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolve by the operating system; an address stands for itself, and takes no thread."""
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def permitted(
    host: str, port: int, *, resolver: Resolver, policy: Callable[[], Policy]
) -> Sequence[str]:
    """Return the addresses of a host that may be connected to, in order.

    Args:
        host: A name or an address.
        port: The port that is meant, by which the policy may tell.
        resolver: Looks the name up, for at most 15 s.
        policy: Gives the policy of this moment; asked again once the name has been looked up, as
            another attempt may have begun meanwhile.

    Raises:
        Refused: If the policy opens none of them, or there are none.
    """
    if (reason := policy().refuses_name(host)) is not None:
        raise Refused(reason)
    try:
        async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
            addresses = await resolver(host, port)
    except (OSError, UnicodeError, TimeoutError) as error:
        reason = f"cannot resolve {host}: {str(error) or 'no answer in time'}"
        raise Refused(reason, unreachable=True) from error
    now = policy()
    reasons = {a: now.refuses(host, port, a) for a in addresses}
    open_to_us = [address for address, reason in reasons.items() if reason is None]
    if open_to_us:
        return open_to_us
    first = next((reason for reason in reasons.values() if reason), None)
    if first is None:
        raise Refused(f"{host} has no address", unreachable=True)
    raise Refused(first)
