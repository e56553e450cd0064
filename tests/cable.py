"""A cable that can be pulled: a TCP port that leads elsewhere, for as long as it is whole."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_CHUNK = 65_536


class Cable:
    """Leads from a port of its own to a port or socket of somebody.

    While it is stalled nothing gets through and nobody is told, not even that the other end is
    gone; connections that it has lost stay so for ever, and new ones are carried. When it is cut
    every connection ends, and no new one is taken.
    """

    def __init__(
        self,
        to: tuple[str, int] | Path,
        *,
        at: str = "127.0.0.1",
        noticed_s: float | None = None,
    ) -> None:
        """Note where it leads.

        Args:
            to: A port or socket of somebody.
            at: Where it listens.
            noticed_s: They notice after so long that a connection is lost, as by TCP's keepalive,
                which sockets don't have.
        """
        self._to = to
        self._noticed_s = noticed_s
        self._at = at
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._losses = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._far: set[asyncio.StreamWriter] = set()
        self.port = 0

    def stall(self) -> None:
        self._whole.clear()

    def lose(self) -> None:
        self._losses += 1
        if self._noticed_s is not None:
            for end in self._far:
                asyncio.get_running_loop().call_later(self._noticed_s, end.transport.abort)

    def cut(self) -> None:
        self._refuses = True
        for end in list(self._open):
            end.transport.abort()

    def mend(self) -> None:
        self._refuses = False
        self._whole.set()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Cable"]:
        """Take connections for as long as the block lasts."""
        over = asyncio.Event()
        served: set[asyncio.Task[None] | None] = set()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.add(asyncio.current_task())
            try:
                async with asyncio.TaskGroup() as group:
                    carrying = group.create_task(self._carry(reader, writer), name="cable")
                    ending = group.create_task(over.wait(), name="end of cable")
                    await asyncio.wait({carrying, ending}, return_when=asyncio.FIRST_COMPLETED)
                    carrying.cancel()
                    ending.cancel()
            finally:
                served.discard(asyncio.current_task())

        server = await asyncio.start_server(carry, self._at, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            over.set()
            while served:
                await asyncio.sleep(0)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            losses = self._losses
            await self._carries(losses)
            if not self._refuses:
                await self._through(reader, writer, losses)
        except OSError:
            pass  # nobody is at the other end
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _carries(self, losses: int) -> None:
        """Wait until something gets through that came after so many losses."""
        await self._whole.wait()
        if losses != self._losses:
            await asyncio.Event().wait()

    async def _through(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losses: int
    ) -> None:
        if isinstance(self._to, Path):
            there, back = await asyncio.open_unix_connection(self._to)
        else:
            there, back = await asyncio.open_connection(*self._to)
        self._open.add(back)
        self._far.add(back)
        try:
            async with asyncio.TaskGroup() as group:
                ways = [
                    group.create_task(self._pump(reader, back, losses)),
                    group.create_task(self._pump(there, writer, losses)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
        finally:
            self._open.discard(back)
            self._far.discard(back)
            back.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losses: int
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._carries(losses)
                writer.write(data)
                await writer.drain()
        await self._carries(losses)
