"""The page as it is at the end, with its frames, styles and pictures, in one file."""

import asyncio
from pathlib import Path

from playwright.async_api import Page

from agent.chromium.recording import checks
from agent.chromium.recording.recorder import RecordingFailed
from agent.ports import Bare
from farm.protocol.recordings import RecordingKind

TAKE_S = 4.0


class SnapshotRecorder:
    """Takes an MHTML snapshot when it is stopped."""

    kind = RecordingKind.DOM
    wants_window = False

    def __init__(self, page: Page, bare: Bare, path: Path) -> None:
        """`bare` keeps out of the page what is not its own."""
        self._page = page
        self._bare = bare
        self._path = path
        self._taken = False

    async def start(self) -> None:
        """See `Recorder`."""

    async def size(self) -> int:
        """See `Recorder`; nothing is taken before the end."""
        return 0

    async def stop(self) -> None:
        """See `Recorder`."""
        if self._taken:
            return
        self._taken = True
        try:
            async with asyncio.timeout(TAKE_S), self._bare():
                session = await self._page.context.new_cdp_session(self._page)
                taken = await session.send("Page.captureSnapshot", {"format": "mhtml"})
                await session.detach()
        except TimeoutError:
            raise RecordingFailed("the page does not answer") from None
        await asyncio.to_thread(self._path.write_bytes, taken["data"].encode("utf-8", "replace"))

    async def keep(self) -> Path:
        """See `Recorder`."""
        await asyncio.to_thread(checks.check_mhtml, self._path)
        return self._path
