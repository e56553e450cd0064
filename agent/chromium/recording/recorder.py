"""What a kind of recording has to do, and which pages are an attempt's own."""

from pathlib import Path
from typing import Protocol

from playwright.async_api import Page

from agent.chromium.tabs import Tab
from farm.protocol.recordings import RecordingKind


class RecordingFailed(Exception):  # noqa: N818 - an outcome, told to the farm
    """There is no recording; the text says why."""


class Recorder(Protocol):
    """Takes one recording. Its calls may be cut off by a clock; what it takes is kept on disk."""

    kind: RecordingKind
    wants_window: bool
    """It takes all of the window, so it can't tell two attempts in one window apart."""

    async def start(self) -> None:
        """Begin to take; raises what Playwright raises, or `RecordingFailed`."""
        ...

    async def size(self) -> int:
        """Return about how many bytes it has taken, and never more than there will be."""
        ...

    async def stop(self) -> None:
        """Take nothing more; what was taken stays. May be repeated."""
        ...

    async def keep(self) -> Path:
        """Return the file, whole and checked; only after `stop`.

        Raises:
            RecordingFailed: If it is not whole.
        """
        ...


class Mine:
    """Tells the pages of one attempt: its tab's, and those that this has opened."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._seen: set[Page] = {tab.page}

    def __call__(self, page: Page | None) -> bool:
        """Tell whether a page is the attempt's; it stays so when it has closed."""
        if page is None:
            return False
        if page in self._tab.extras:
            self._seen.add(page)
        return page in self._seen

    def strangers(self) -> frozenset[str]:
        """Return the names by which the driver knows the other pages of the window."""
        return frozenset(name_of(page) for page in self._tab.page.context.pages if not self(page))


def name_of(page: Page) -> str:
    """Return the name under which a page is found in the driver's recordings."""
    return str(page._impl_obj._guid)  # it is told in no other way
