"""A cable that can be pulled: a TCP port that leads elsewhere, for as long as it is whole."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_CHUNK = 65_536


class Cable:
    """Leads from a port of its own to a port or socket of somebody.

    While it is stalled nothing gets through and nobody is told, as when the network drops what it
    is given; when it is cut every connection ends, and no new one is taken.
    """

    def __init__(self, to: int | Path) -> None:
        self._to = to
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._open: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self.port = 0

    def stall(self) -> None:
        self._whole.clear()

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
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            self._whole.set()
            if self._carrying:
                await asyncio.wait(self._carrying)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        self._open.add(writer)
        try:
            await self._whole.wait()
            if not self._refuses:
                await self._through(reader, writer)
        except OSError:
            pass  # nobody is at the other end
        finally:
            self._open.discard(writer)
            writer.transport.abort()
            self._carrying.discard(task)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(self._to, Path):
            there, back = await asyncio.open_unix_connection(self._to)
        else:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._open.add(back)
        try:
            async with asyncio.TaskGroup() as group:
                ways = [
                    group.create_task(self._pump(reader, back)),
                    group.create_task(self._pump(there, writer)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
        finally:
            self._open.discard(back)
            back.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
