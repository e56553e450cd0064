"""Where a page may go: decided by the address that would be connected to. Pure.

Public addresses are open. Private, loopback and every other special-purpose address is closed
unless the attempt's `Egress.allow` names the host, the host and port, or a network around the
address. Link-local addresses and the places where clouds keep their instances' credentials are
closed whatever the policy says (P18).
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from farm.protocol.plan import Egress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NEVER_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
    }
)
_NEVER: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local, and with it most clouds' metadata
        "fe80::/10",
        "fd00:ec2::/32",  # AWS over IPv6: metadata, DNS, time
        "fd20:ce::254/128",  # Google over IPv6
        "fd00:42::42/128",  # Scaleway over IPv6
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's host agent
        "192.0.0.192/32",  # Oracle
    )
)
_IPV6_PUBLIC = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_CLOSED_6: tuple[ipaddress.IPv6Network, ...] = tuple(
    ipaddress.IPv6Network(text) for text in ("2001:db8::/32", "3fff::/20", "2001:2::/48")
)
_CLOSED_4 = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
_ISATAP = (0x00005EFE, 0x02005EFE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """One entry of `Egress.allow`, understood. `port` None is every port."""

    host: str | None = None
    network: Network | None = None
    port: int | None = None

    def covers(self, host: str, port: int, addresses: Iterable[Address]) -> bool:
        """Tell whether the entry opens the way to this host and port at one of these addresses."""
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            return any(_inside(address, self.network) for address in addresses)
        return self.host == host


@dataclass(frozen=True, slots=True)
class Policy:
    """What one window may reach now."""

    allowed: tuple[Allowed, ...] = ()

    @classmethod
    def of(cls, egress: Egress) -> "Policy":
        """Read the entries of a plan.

        Raises:
            ValueError: If an entry is neither a host, a host and port, nor a network.
        """
        return cls(tuple(parse_entry(text) for text in egress.allow))

    def refuses_name(self, host: str) -> str | None:
        """Return why a name must not even be resolved, or None."""
        if plain_host(host) in _NEVER_NAMES:
            return "cloud metadata is never reachable"
        return None

    def refuses(self, host: str, port: int, address: str) -> str | None:
        """Return why this address of a host must not be connected to, or None if it may."""
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return f"{address!r} is no address"
        faces = (parsed, *embedded(parsed))
        if any(_inside(face, network) for face in faces for network in _NEVER):
            return "link-local and cloud metadata addresses are never reachable"
        if all(is_public(face) for face in faces):
            return None
        if any(entry.covers(plain_host(host), port, faces) for entry in self.allowed):
            return None
        return f"{parsed} is not a public address and no entry of egress.allow names it"


def parse_entry(text: str) -> Allowed:
    """Read one entry of `Egress.allow`: `host`, `host:port` or `network/prefix`.

    Raises:
        ValueError: If it is none of these.
    """
    if "/" in text:
        return Allowed(network=ipaddress.ip_network(text.strip(), strict=False))
    host, port = split_authority(text.strip(), default_port=None)
    try:
        return Allowed(network=ipaddress.ip_network(host), port=port)
    except ValueError:
        return Allowed(host=plain_host(host), port=port)


def split_authority(text: str, *, default_port: int | None) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `[v6]` or `[v6]:port`; a bare IPv6 address is a host.

    Raises:
        ValueError: If the host is empty or the port is no port.
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not a host")
        port_text = rest[1:]
    elif text.count(":") > 1:
        host, port_text = str(ipaddress.IPv6Address(text)), ""
    else:
        host, _, port_text = text.partition(":")
    if not host or any(c.isspace() or c in "/@?#" for c in host):
        raise ValueError(f"{text!r} is not a host")
    return host, _port(port_text) if port_text else default_port


def plain_host(host: str) -> str:
    """Return a host name as it is compared: lower case, no final dot."""
    return host.lower().rstrip(".")


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the open internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64 or address.ipv4_mapped is not None:
            return True  # judged by the IPv4 address inside
        return address in _IPV6_PUBLIC and not any(address in closed for closed in _CLOSED_6)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in closed for closed in _CLOSED_4)
    )


def embedded(address: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses an IPv6 address may lead to: mapped, NAT64, 6to4, Teredo, ISATAP."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    low = int(address) & 0xFFFF_FFFF
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address in _NAT64 or address in _NAT64_LOCAL or address in _COMPATIBLE:
        yield ipaddress.IPv4Address(low)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield ipaddress.IPv4Address(low)


def _inside(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 65_536:
        raise ValueError(f"{text!r} is not a port")
    return int(text)
