"""Making a tab as a new one without closing its window: for jobs of one owner with equal options.

Everything a page can leave is cleared, and looked for afterwards. What can't be cleared from
outside (storage of a frame of another site, which Chromium keeps apart by a key of its own; a
password given to a server) is watched for while the job runs: a tab where that was seen is not
reset, and its window is closed instead.
"""

import asyncio
from collections.abc import Awaitable
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, CDPSession, Frame, Page, Response
from playwright.async_api import Error as PlaywrightError

from agent.chromium.shielding import within

RESET_S = 5.0
_MAX_ORIGINS = 20
_UNAUTHORIZED = 401


class Unproven(Exception):  # noqa: N818 - an outcome, not a fault
    """It can't be said that nothing is left; the text says why."""


class Traces:
    """What the documents of a tab may have left, told by what is seen of them."""

    def __init__(self) -> None:
        self._origins: dict[str, None] = {}
        self._stain: str | None = "nobody has watched it"

    def watch(self, page: Page) -> None:
        """Watch a page, on which nothing has run yet."""
        self._stain = None
        page.on("framenavigated", self._on_navigated)
        page.on("response", self._on_response)
        page.on("popup", lambda _: self.stain("a page opened another one"))

    def stain(self, why: str) -> None:
        """Note something that can't be undone; the first is kept."""
        self._stain = self._stain or why

    def take(self) -> list[str]:
        """Return the origins of all documents since the last time.

        Raises:
            Unproven: If something can't be undone.
        """
        if self._stain is not None:
            raise Unproven(self._stain)
        found, self._origins = list(self._origins), {}
        return found

    def _on_navigated(self, frame: Frame) -> None:
        origin = _origin(frame.url)
        if origin is None:
            return
        top = frame.page.main_frame
        if frame is not top and origin != _origin(top.url):
            self.stain(f"a frame of another site: {origin}")
        self._origins[origin] = None
        if len(self._origins) > _MAX_ORIGINS:
            self.stain(f"more than {_MAX_ORIGINS} sites")

    def _on_response(self, response: Response) -> None:
        # Chromium keeps a name and password that were given, and nothing makes it forget them.
        if response.status == _UNAUTHORIZED:
            self.stain("a server asked for a password")


def _origin(url: str) -> str | None:
    """Return the origin that a document of this URL stores things under; None where it has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return None  # about:, data: and blob: have none, or that of a document seen before
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}"


async def reset(page: Page, session: CDPSession, traces: Traces) -> None:
    """Make a tab as a new one.

    What its window was opened with stays as it is, permissions too: they are settled for every site
    and every kind from the beginning, so that no page can ask for one and be given it.

    Args:
        page: The tab. Nothing runs on it.
        session: The tab's debugging session.
        traces: What its documents may have left.

    Raises:
        Unproven: If something may be left. The tab must not be used again.
    """
    origins = traces.take()
    try:
        if not await within(RESET_S, _reset(page, session, origins)):
            raise Unproven("it took too long")
    except PlaywrightError as error:
        raise Unproven(f"the browser did not do it: {error}") from error
    except ExceptionGroup as error:
        raise Unproven(str(error.exceptions[0])) from error
    if traces.take():  # what was on its way to us when it began has been heard by now
        raise Unproven("a page was opened meanwhile")


async def _reset(page: Page, session: CDPSession, origins: list[str]) -> None:
    # Whatever still runs in the page ends before anything is cleared, or it would write again.
    await page.goto("about:blank")
    send = session.send
    await _together(
        _forget_name(page),
        send("Network.clearBrowserCache"),
        send("Page.resetNavigationHistory"),
        *(
            send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
            for origin in origins
        ),
    )
    await _together(
        _look_at_history(session),
        _forget_cookies(page.context),
        *(_look_at(session, origin) for origin in origins),
    )


async def _forget_name(page: Page) -> None:
    # Nobody but us has a script in this document, so what it is now it stays.
    if await page.evaluate("(window.name = '', window.name)"):
        raise Unproven("the window's name is not clear")


async def _look_at_history(session: CDPSession) -> None:
    history = await session.send("Page.getNavigationHistory")
    if len(history["entries"]) != 1:
        raise Unproven("the history is not clear")


async def _forget_cookies(context: BrowserContext) -> None:
    # Most jobs leave none, and to look is cheaper than to clear.
    if not await context.cookies():
        return
    await context.clear_cookies()
    if await context.cookies():
        raise Unproven("the cookies are not clear")


async def _look_at(session: CDPSession, origin: str) -> None:
    left = await session.send("Storage.getUsageAndQuota", {"origin": origin})
    if left["usage"]:
        raise Unproven(f"{origin} still stores {left['usage']:.0f} bytes")


async def _together(*calls: Awaitable[object]) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(_awaited(call), name="tab.reset")


async def _awaited(call: Awaitable[object]) -> None:
    await call


__all__ = ["RESET_S", "Traces", "Unproven", "reset"]
