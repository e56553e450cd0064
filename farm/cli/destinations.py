"""What `--allow` and `FARM_EGRESS_ALLOW` name, checked at the start and not by each job."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from farm.cli.exits import ExitCode
from farm.cli.running import CommandError


def checked(entries: Iterable[str]) -> tuple[str, ...]:
    """Return the entries, each of which is `host`, `host:port` or `network/prefix`.

    Raises:
        CommandError: With `USAGE`, naming one that is none of these.
    """
    kept = tuple(entries)
    for entry in kept:
        if not _is_destination(entry):
            raise CommandError(
                f"{entry!r} is nothing that can be allowed: write HOST, HOST:PORT or"
                " NETWORK/PREFIX, such as 127.0.0.1:8000 or 10.0.0.0/8",
                ExitCode.USAGE,
            )
    return kept


def _is_destination(entry: str) -> bool:
    try:
        if "/" in entry:
            ipaddress.ip_network(entry, strict=False)
            return True
        if entry.count(":") > 1 and not entry.startswith("["):
            ipaddress.IPv6Address(entry)
            return True
        parts = urlsplit(f"//{entry}")
        port = parts.port
    except ValueError:
        return False
    odd = any(character.isspace() or character in "@?#" for character in entry)
    return bool(parts.hostname) and not odd and port != 0
