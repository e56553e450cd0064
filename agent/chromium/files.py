"""The files of one attempt on this machine's disk: those its pages hand out or are given.

All lie in the workspace of the browser's life, and go with the attempt, at the latest with that.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from playwright.async_api import Download
from playwright.async_api import Error as PlaywrightError

from agent.chromium.shielding import to_the_end, within
from agent.ports import Handed, UploadRefused

_LOOK_S = 0.05
_STOP_S = 1.0


class AttemptFiles:
    """Implements `agent.ports.Files`; `close` deletes what there is."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._folder: Path | None = None
        self._expected: deque[asyncio.Future[Handed]] = deque()

    @contextlib.contextmanager
    def expecting(self) -> Iterator[asyncio.Future[Handed]]:
        """Take the next download that nobody else expects."""
        coming: asyncio.Future[Handed] = asyncio.get_running_loop().create_future()
        self._expected.append(coming)
        try:
            yield coming
        finally:
            coming.cancel()
            self._expected = deque(one for one in self._expected if one is not coming)

    def take(self, download: Download) -> bool:
        """Hand a download to the one who expects it; tell whether there is one."""
        while self._expected:
            coming = self._expected.popleft()
            if not coming.done():
                coming.set_result(HandedFile(download))
                return True
        return False

    async def folder(self) -> Path:
        """Return a folder of the attempt's own."""
        if self._folder is None:
            self._folder = Path(
                await asyncio.to_thread(tempfile.mkdtemp, prefix="files-", dir=self._base)
            )
        return self._folder

    async def close(self) -> None:
        """Delete the folder; files in it may be gigabytes."""
        if self._folder is not None:
            await to_the_end(asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True))


class HandedFile:
    """Implements `agent.ports.Handed` by a download of Playwright's."""

    def __init__(self, download: Download) -> None:
        self._download = download
        self.name = download.suggested_filename
        self._too_large = False

    async def saved(self, max_bytes: int) -> Path:
        """Wait until it is whole; break it off where it grows too large."""
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._bound(max_bytes), name="download.bound")
            try:
                error = await self._download.failure()
            except PlaywrightError as gone:
                error = gone.message
            finally:
                watch.cancel()
        if error is None:
            path = await self._download.path()
            self._too_large = path.stat().st_size > max_bytes
            if not self._too_large:
                return path
        if self._too_large:
            raise UploadRefused(
                "artifact_too_large", f"{self.name} has more than {max_bytes} bytes"
            )
        raise UploadRefused("download_failed", f"{self.name} broke off: {error}")

    async def _bound(self, max_bytes: int) -> None:
        partial = _partial(self._download)
        while not self._too_large:
            await asyncio.sleep(_LOOK_S)  # the browser tells nobody but its driver how far it is
            with contextlib.suppress(OSError):
                self._too_large = partial.stat().st_size > max_bytes
        with contextlib.suppress(PlaywrightError):
            await self._download.cancel()

    async def discard(self) -> None:
        """Break it off and delete it; never raises."""
        with contextlib.suppress(PlaywrightError):
            await within(_STOP_S, self._download.cancel())
            await within(_STOP_S, self._download.delete())


def _partial(download: Download) -> Path:
    """Return the file that grows while it is downloaded.

    Playwright says where it is only when it is whole, and passes no progress on; the first is in
    what the driver has told about the download.
    """
    where: str = download._impl_obj._artifact._initializer["absolutePath"]
    return Path(f"{where}.crdownload")
