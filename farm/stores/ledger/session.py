"""Sessions of a PostgreSQL server that end when nothing is heard of it any more."""

import asyncio
import socket
from typing import Any

import asyncpg

SILENCE_S = 15
_PROBES = 3
_OPTIONS = {
    "TCP_KEEPIDLE": SILENCE_S // _PROBES,
    "TCP_KEEPINTVL": SILENCE_S // _PROBES,
    "TCP_KEEPCNT": _PROBES - 1,
    "TCP_USER_TIMEOUT": SILENCE_S * 1000,
}


class Session(asyncpg.Connection):
    """One whose network tells it nothing ends after `SILENCE_S`, whether or not it is used.

    That is before the server ends its side of it, and gives to others what it has held.
    """

    __slots__ = ()

    def __init__(self, protocol: Any, transport: asyncio.Transport, *rest: Any) -> None:  # noqa: ANN401 - as asyncpg passes them
        super().__init__(protocol, transport, *rest)
        connected: socket.socket = transport.get_extra_info("socket")
        if connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _OPTIONS.items():
                if (option := getattr(socket, name, None)) is not None:  # not everywhere
                    connected.setsockopt(socket.IPPROTO_TCP, option, value)
