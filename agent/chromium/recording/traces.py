"""What Playwright's driver records of a whole window: its trace, and its traffic as a HAR."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from playwright.async_api import BrowserContext

from agent.chromium.recording import checks
from agent.chromium.recording.recorder import Mine
from farm.protocol.recordings import RecordingKind

_HAR_ENTRY_BYTES = 2_000
"""About what one request takes in a HAR without the contents of answers."""


class TraceFiles:
    """Where the driver of one browser gathers its traces.

    It deletes nothing there while the browser lives, so we do. What a window's trace has gathered
    of resources it believes to be there in the next trace of that window, too: they go when no
    window is left of which there has been a trace.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = asyncio.Lock()
        self._windows: set[BrowserContext] = set()

    async def begin(self, context: BrowserContext) -> int:
        """Make room for a trace of a window; return how many bytes are there already."""
        async with self._lock:
            if not self._windows:
                await asyncio.to_thread(self._remove, "")
            if context not in self._windows:
                self._windows.add(context)
                context.on("close", lambda gone: self._windows.discard(gone))
        return await self.size()

    async def size(self) -> int:
        """Return how many bytes there are."""
        return await asyncio.to_thread(lambda: sum(size for _, size in self._files()))

    async def end(self, name: str) -> None:
        """Delete what is of one trace alone."""
        await asyncio.to_thread(self._remove, name)

    def _files(self) -> Iterator[tuple[Path, int]]:
        for path in self.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    yield path, path.stat().st_size

    def _remove(self, prefix: str) -> None:
        for path, _ in self._files():
            if path.name.startswith(prefix):
                path.unlink(missing_ok=True)


class TraceRecorder:
    """A trace for Playwright's viewer: steps, pictures, DOM snapshots, console and traffic."""

    kind = RecordingKind.TRACE
    wants_window = True

    def __init__(
        self, context: BrowserContext, mine: Mine, path: Path, files: TraceFiles, name: str
    ) -> None:
        """`name` tells it from other traces of the browser."""
        self._context = context
        self._mine = mine
        self._path = path
        self._files = files
        self._name = name
        self._before = 0
        self._going = False
        self._strangers: frozenset[str] = frozenset()

    async def start(self) -> None:
        """See `Recorder`."""
        self._before = await self._files.begin(self._context)
        self._strangers = self._mine.strangers()
        self._going = True
        await self._context.tracing.start(name=self._name, screenshots=True, snapshots=True)

    async def size(self) -> int:
        """See `Recorder`; with what other traces of the browser have gathered meanwhile."""
        return await self._files.size() - self._before

    async def stop(self) -> None:
        """See `Recorder`."""
        if not self._going:
            return
        self._going = False
        self._strangers |= self._mine.strangers()
        try:
            await self._context.tracing.stop(path=self._path)
        finally:
            await self._files.end(self._name)

    async def keep(self) -> Path:
        """See `Recorder`."""
        if self._strangers:
            await asyncio.to_thread(checks.narrow_trace, self._path, self._strangers)
        await asyncio.to_thread(checks.check_trace, self._path)
        return self._path


class HarRecorder:
    """The window's traffic as HAR 1.2: everything but the contents of the answers."""

    kind = RecordingKind.HAR
    wants_window = True

    def __init__(self, context: BrowserContext, mine: Mine, path: Path) -> None:
        self._context = context
        self._mine = mine
        self._path = path
        self._count = 0
        self._going = False
        self._strangers: frozenset[str] = frozenset()

    async def start(self) -> None:
        """See `Recorder`."""
        self._strangers = self._mine.strangers()
        self._context.on("request", self._on_request)
        self._going = True
        await self._context.tracing.start_har(self._path, content="omit", mode="full")

    async def size(self) -> int:
        """See `Recorder`; the driver keeps it in memory and tells no size, so requests count."""
        return self._count * _HAR_ENTRY_BYTES

    async def stop(self) -> None:
        """See `Recorder`."""
        if not self._going:
            return
        self._going = False
        self._context.remove_listener("request", self._on_request)
        self._strangers |= self._mine.strangers()
        await self._context.tracing.stop_har()

    async def keep(self) -> Path:
        """See `Recorder`."""
        await asyncio.to_thread(checks.narrow_har, self._path, self._strangers)
        return self._path

    def _on_request(self, _: object) -> None:
        self._count += 1
