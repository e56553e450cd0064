"""One tab: its page, how it ended, and the one means to stop what runs in it."""

import asyncio
import contextlib
from collections.abc import Callable
from enum import StrEnum
from typing import Self

from playwright.async_api import BrowserContext, CDPSession, Download, Page
from playwright.async_api import Error as PlaywrightError

from agent.chromium.control import TabControl
from agent.chromium.files import AttemptFiles
from agent.chromium.happenings import Happenings
from agent.chromium.overlays import TabOverlay
from agent.chromium.resetting import Traces, Unproven, reset
from agent.chromium.screen import Seen
from agent.chromium.shielding import within
from farm.protocol.plan import POPUPS, WindowBounds

_STOP_S = 1.0
_PRESSES = 16
_ANSWER_S = 0.25
_COVER_S = 10.0


class End(StrEnum):
    """How a tab ended."""

    CRASHED = "crashed"
    CLOSED = "closed"
    LOST = "lost"
    """With the browser."""
    FLOODED = "flooded"
    """It raises errors without end; its scripts have to be stopped, for the page is still there."""


class Tab:
    """A page under the name the farm knows it by."""

    def __init__(
        self,
        context_id: str,
        page: Page,
        session: CDPSession,
        overlay: TabOverlay | None,
        control: TabControl,
    ) -> None:
        self.context_id = context_id
        self.page = page
        self.overlay = overlay
        """In a headed browser, where it is wanted."""
        self.control = control
        self.pressed: asyncio.Queue[Seen] = asyncio.Queue(_PRESSES)
        """What was pressed on the screen, in whichever window, while an attempt runs on it."""
        self._session = session
        self.traces = Traces()
        self.ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self.happenings: Happenings | None = None
        """Of the attempt that runs on it; None while none does."""
        self.files: AttemptFiles | None = None
        """Of the same attempt."""
        self.task_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when another attempt begins: who watched the last may have no right to this one."""
        self.extras: dict[Page, bool] = {}
        """Pages its attempt has opened, and whether they have crashed."""
        self.most_extras = POPUPS
        """So many of them may be open at a time."""
        self.company: Callable[[], None] | None = None
        """Hears that another attempt begins in the window, while one is recorded on this tab."""

    @classmethod
    async def open(
        cls,
        context_id: str,
        context: BrowserContext,
        overlay: TabOverlay | None,
        control: TabControl,
    ) -> Self:
        """Open a page in a context, with a debugging session from its first moment.

        The session must be there before the page hangs: it can stop a script only then.
        """
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await control.watch_over(session)
        if overlay is not None:
            await overlay.cover(session)
        return cls(context_id, page, session, overlay, control)

    def begin_task(self) -> None:
        """Another attempt begins, maybe for others."""
        before, self.task_over = self.task_over, asyncio.get_running_loop().create_future()
        before.set_result(None)

    def end(self, how: End) -> None:
        """Say how the tab ended; the first to say so is right."""
        if not self.ended.done():
            self.ended.set_result(how)

    async def place(self, bounds: WindowBounds) -> None:
        """Put the window it is in somewhere on the screen.

        Raises:
            PlaywrightError: If the browser does not do it.
        """
        window = await self._session.send("Browser.getWindowForTarget")
        order = {"windowId": window["windowId"], "bounds": bounds.model_dump()}
        await self._session.send("Browser.setWindowBounds", order)

    def note(self, code: str, detail: str) -> None:
        """Keep a notice for the attempt that runs, if one does."""
        if self.happenings is not None:
            self.happenings.note(code, detail)

    def take(self, download: Download) -> bool:
        """Hand a download to the step that expects it; tell whether there is one."""
        return self.files is not None and self.files.take(download)

    def flooded(self) -> None:
        """One of its pages raises errors without end."""
        self.end(End.FLOODED)

    async def silence(self) -> None:
        """Let no script run in the page any more: what closes it must not wait behind a flood."""
        with contextlib.suppress(PlaywrightError):
            stop = {"value": True}
            await within(_STOP_S, self._session.send("Emulation.setScriptExecutionDisabled", stop))
            await within(_STOP_S, self._session.send("Runtime.terminateExecution"))

    async def unhang(self) -> None:
        """Break off the script that runs in the page, if the page does not answer because of it."""
        with contextlib.suppress(PlaywrightError):
            ask = self._session.send("Runtime.evaluate", {"expression": "1"})
            if not await within(_ANSWER_S, ask):
                await within(_STOP_S, self._session.send("Runtime.terminateExecution"))

    async def reset(self) -> None:
        """Make it as a new one; see `resetting.reset`."""
        if self.ended.done():
            raise Unproven(f"the page has {self.ended.result()}")
        await reset(self.page, self._session, self.traces)

    async def adopt(self, page: Page, changed: Callable[[], None]) -> None:
        """Take a page that the attempt has opened; `changed` hears that it is gone, or crashed."""

        def closed(_: Page) -> None:
            self.extras.pop(page, None)
            changed()

        def crashed(_: Page) -> None:
            self.note("popup_crashed", page.url)
            if page in self.extras:
                self.extras[page] = True
            changed()

        self.extras[page] = False
        page.on("close", closed)
        page.on("crash", crashed)
        changed()
        if self.overlay is not None or self.control.guards:
            with contextlib.suppress(PlaywrightError):
                await within(_COVER_S, self._attend(page))

    async def _attend(self, page: Page) -> None:
        session = await page.context.new_cdp_session(page)
        await self.control.watch_over(session)
        if self.overlay is not None:
            await self.overlay.cover(session, guest=True)

    async def close_extras(self) -> bool:
        """Close the pages the attempt has opened; tell whether all of them did."""
        pages, self.extras = self.extras, {}
        async with asyncio.TaskGroup() as group:
            for page in pages:
                group.create_task(_close(page), name="popup.close")
        return all(page.is_closed() for page in pages)


async def _close(page: Page) -> None:
    with contextlib.suppress(PlaywrightError):
        await within(_STOP_S, page.close())
