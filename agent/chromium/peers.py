"""One end of what passes through an egress proxy, whichever it is."""

import asyncio
import contextlib
import socket
import struct
from typing import Protocol


class Passage(Protocol):
    """Where the connections of a proxy are known, and may be shut."""

    opened: "set[Peer]"
    """The connections there are."""

    def is_open(self) -> bool:
        """Tell whether anything may pass now."""
        ...


class Peer(asyncio.Protocol):
    """One end. What it can't take yet is not read from the other one."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._transport: asyncio.Transport | None = None
        self.other: Peer | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """The socket."""
        assert self._transport is not None  # noqa: S101 - for the type checker
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport
        self._passage.opened.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._passage.opened.discard(self)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self.other is not None:
            self.other.transport.resume_reading()

    def reset(self) -> None:
        """Break off, so that the peer can't take what it has for the whole."""
        connected: socket.socket | None = self.transport.get_extra_info("socket")
        if connected is not None:  # under TLS there is none once it is closing
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
