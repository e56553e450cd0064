"""A TCP balancer that a test steers: a connection goes where it is told, by what is asked first."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_CHANNELS = b"GET /v1/agent/channels/"
_CHUNK = 64 * 1024


class Steering:
    """Sends agents' channels to one farm, and everything else to another."""

    def __init__(self, *, channels: str, rest: str) -> None:
        """Each is the URL of a farm, and may be set to another's while it runs."""
        self.channels = channels
        self.rest = rest
        self.url = ""
        self.channels_open = 0

    async def carry(self, asks: asyncio.StreamReader, hears: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with _closing(hears):
                await self._carry(asks, hears)

    async def _carry(self, asks: asyncio.StreamReader, hears: asyncio.StreamWriter) -> None:
        first = await asks.readuntil(b"\r\n")
        is_channel = first.startswith(_CHANNELS)
        farm = urlsplit(self.channels if is_channel else self.rest)
        answers, told = await asyncio.open_connection(farm.hostname, farm.port)
        async with _closing(told):
            told.write(first)
            self.channels_open += is_channel
            try:
                await _both(_pour(asks, told), _pour(answers, hears))
            finally:
                self.channels_open -= is_channel


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while content := await source.read(_CHUNK):
            sink.write(content)
            await sink.drain()


async def _both(*ways: "asyncio._CoroutineLike[None]") -> None:
    """Run both until one ends."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def steering_to(*, channels: str, rest: str) -> AsyncIterator[Steering]:
    """Run one on a free loopback port."""
    steering = Steering(channels=channels, rest=rest)
    carried: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:

        def begin(asks: asyncio.StreamReader, hears: asyncio.StreamWriter) -> None:
            task = group.create_task(steering.carry(asks, hears))
            carried.add(task)
            task.add_done_callback(carried.discard)

        server = await asyncio.start_server(begin, "127.0.0.1", 0)
        steering.url = "http://{}:{}".format(*server.sockets[0].getsockname())
        try:
            yield steering
        finally:
            server.close()
            for task in carried:
                task.cancel()
