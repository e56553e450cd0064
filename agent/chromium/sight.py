"""Which windows and tabs there are, those included that no command of ours has opened.

A person opens windows in the browser's default context and in incognito ones, of which Playwright
tells nothing. The browser's own list of targets has them; nobody attaches to any, so of what people
do there nothing is learned but that a tab is there, in which window, and in front or not.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from weakref import WeakKeyDictionary

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from agent.ports import SeenTab, SeenWindow
from farm.protocol.messages import Bounds

_LOOK_S = 3.0
_TABS = {"type": "tab"}
_PAGES = {"type": "page"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One page of a worker's window, as Playwright knows it."""

    window_id: str
    page: Page
    context_id: str | None = None
    opener: str | None = None
    """For a page that a task has opened: the tab of the task."""
    crashed: bool = False

    def seen(self, key: str, *, front: bool) -> SeenTab:
        """Return it as it is told."""
        return SeenTab(
            key=key,
            context_id=self.context_id,
            opener=self.opener,
            front=front,
            crashed=self.crashed,
        )


def guessed(shown: Iterable[Shown], *, apart: bool) -> tuple[SeenWindow, ...]:
    """Return what Playwright knows, for browsers without windows: nobody opens any there.

    Args:
        shown: The pages, in the order in which they were opened.
        apart: Each page is in front, as in chrome-headless-shell; else the last of each window.
    """
    windows: dict[str, list[Shown]] = {}
    for one in shown:
        windows.setdefault(one.window_id, []).append(one)
    return tuple(
        SeenWindow(
            key=window_id,
            window_id=window_id,
            tabs=tuple(
                one.seen(f"{window_id}/{id(one.page):x}", front=apart or one is those[-1])
                for one in those
            ),
        )
        for window_id, those in windows.items()
    )


@dataclass(slots=True)
class _Frame:
    """A window of the browser's, as it is put together."""

    window_id: str | None
    bounds: Bounds | None
    tabs: list[SeenTab] = field(default_factory=list)


class Sight:
    """Sees the windows of a headed browser. `stirred` is called when a tab has come or gone."""

    def __init__(self, session: CDPSession, stirred: Callable[[], None]) -> None:
        self._session = session
        self._stirred = stirred
        self._keys: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        """The target of each page of ours."""
        self._tab_of: dict[str, str] = {}
        """The tab target of a page target; asked only where a window has several."""
        self._attached: dict[str, asyncio.Future[str]] = {}

    @classmethod
    async def open(cls, browser: PlaywrightBrowser, stirred: Callable[[], None]) -> Self:
        """Begin to watch a browser.

        Raises:
            PlaywrightError: If the browser does not answer.
        """
        sight = cls(await browser.new_browser_cdp_session(), stirred)
        sight._session.on("Target.targetCreated", lambda _: stirred())
        sight._session.on("Target.targetDestroyed", lambda _: stirred())
        sight._session.on("Target.receivedMessageFromTarget", sight._on_message)
        # Tabs and not pages: these would tell of every navigation, too.
        await sight._session.send(
            "Target.setDiscoverTargets", {"discover": True, "filter": [_TABS]}
        )
        return sight

    async def look(self, shown: Iterable[Shown]) -> tuple[SeenWindow, ...]:
        """Return all windows there are; `shown` are the pages that are ours.

        Raises:
            PlaywrightError: If the browser does not answer.
            TimeoutError: If it does not in time.
        """
        async with asyncio.timeout(_LOOK_S):
            found = await self._send("Target.getTargets", {"filter": [_TABS, _PAGES]})
            targets = {info["targetId"]: info for info in found["targetInfos"]}
            frames: dict[str, _Frame] = {}
            await self._see_ours(shown, targets, frames)
            await self._see_theirs(targets, frames)
        return tuple(
            SeenWindow(
                key=key, window_id=frame.window_id, bounds=frame.bounds, tabs=tuple(frame.tabs)
            )
            for key, frame in frames.items()
        )

    async def _see_ours(
        self, shown: Iterable[Shown], targets: dict[str, Any], frames: dict[str, _Frame]
    ) -> None:
        placed: list[tuple[str, str, Shown]] = []
        for one in shown:
            with contextlib.suppress(PlaywrightError):  # it has closed meanwhile
                key = await self._key(one.page)
                frame = await self._place(key, one.window_id, frames)
                placed.append((frame, key, one))
        number = Counter(frame for frame, _, _ in placed)
        for frame, key, one in placed:
            front = number[frame] == 1 or await self._is_in_front(key, targets)
            frames[frame].tabs.append(one.seen(key, front=front))

    async def _see_theirs(self, targets: dict[str, Any], frames: dict[str, _Frame]) -> None:
        # The contexts that were made by command are ours, also those that are about to be known.
        ours = set((await self._send("Target.getBrowserContexts"))["browserContextIds"])
        for key, info in sorted(targets.items()):
            if not _is_in_a_strip(info) or info.get("browserContextId") in ours:
                continue
            with contextlib.suppress(PlaywrightError):
                frame = await self._place(key, None, frames)
                front = bool(info["embedderData"].get("tabActive"))
                frames[frame].tabs.append(SeenTab(key=key, front=front))

    async def _place(self, key: str, window_id: str | None, frames: dict[str, _Frame]) -> str:
        """Find the window that a target is in."""
        found = await self._send("Browser.getWindowForTarget", {"targetId": key})
        frame, where = f"{window_id or 'U'}/{found['windowId']}", found["bounds"]
        if frame not in frames:
            sides = ("left", "top", "width", "height")
            known = all(side in where for side in sides)
            bounds = Bounds(**{side: where[side] for side in sides}) if known else None
            frames[frame] = _Frame(window_id, bounds)
        return frame

    async def _key(self, page: Page) -> str:
        if page not in self._keys:
            session = await page.context.new_cdp_session(page)
            info = await session.send("Target.getTargetInfo")
            self._keys[page] = info["targetInfo"]["targetId"]
            await session.detach()
        return self._keys[page]

    async def _is_in_front(self, key: str, targets: dict[str, Any]) -> bool:
        if self._tab_of.get(key) not in targets:
            context = targets.get(key, {}).get("browserContextId")
            known = set(self._tab_of.values())
            for tab, info in targets.items():
                if tab in known or not _is_in_a_strip(info):
                    continue
                if info.get("browserContextId") == context:
                    self._tab_of[await self._page_in(tab)] = tab
        info = targets.get(self._tab_of.get(key, ""), {})
        return bool(info.get("embedderData", {}).get("tabActive"))

    async def _page_in(self, tab: str) -> str:
        """Ask a tab of ours which page it shows: it says so to who is attached to it."""
        async with self._attached_to(tab) as session:
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._attached[session] = answer
            order = {
                "autoAttach": True,
                "waitForDebuggerOnStart": False,
                "flatten": True,
                "filter": [_PAGES],
            }
            text = json.dumps({"id": 1, "method": "Target.setAutoAttach", "params": order})
            await self._send("Target.sendMessageToTarget", {"sessionId": session, "message": text})
            return await answer

    @asynccontextmanager
    async def _attached_to(self, tab: str) -> AsyncIterator[str]:
        order = {"targetId": tab, "flatten": False}
        session = (await self._send("Target.attachToTarget", order))["sessionId"]
        try:
            yield session
        finally:
            self._attached.pop(session, None)
            with contextlib.suppress(PlaywrightError):
                await self._send("Target.detachFromTarget", {"sessionId": session})

    def _on_message(self, event: dict[str, Any]) -> None:
        answer = self._attached.get(event["sessionId"])
        message = json.loads(event["message"])
        if answer is None or answer.done():
            return
        if message.get("method") == "Target.attachedToTarget":
            answer.set_result(message["params"]["targetInfo"]["targetId"])
        elif message.get("id") == 1:
            answer.set_result("")  # it shows none

    async def _send(self, method: str, order: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = await self._session.send(method, order)
        return answer


def _is_in_a_strip(info: dict[str, Any]) -> bool:
    """Tell whether a target is a tab that people see, and none of those the browser uses itself."""
    return info["type"] == "tab" and "embedderData" in info
