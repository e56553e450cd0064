"""The overlay of one tab: what people see of it in a headed browser, and what they say there.

It is drawn from an isolated world of its own, in every document of the tab's pages, and knows
nothing but the picture it was sent last. Failing to show it fails nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

import structlog
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

import overlay
from agent.chromium.control import Act
from agent.chromium.screen import Seen
from agent.chromium.shielding import within
from agent.clock import monotonic
from agent.machine.control import Holder
from farm.protocol.plan import Plan

_log = structlog.get_logger(__name__)
_START_S = 5.0
_PATIENCE_S = 1.0
_FRAME_PX = 3
"""What a window's place may be off, by who tells it."""
_TITLE = 60
"""So much of a title is compared; a window shows no more of a long one."""
_HEARD = 50
_PACE_S = 0.5
"""Whoever has taken a page's process over is heard so often at once, and then at this pace."""
GLANCE_S = 0.1
"""A document that is gone sooner shows nothing: nobody would have seen it, and so it is free."""


class _Sheet:
    """The overlay's end in one page: where its world is at this moment.

    It keeps the debugger's Runtime domain off: that would tell of every world and of all that a
    page writes to its console. So the world is asked for, by its name, and listened to by one call
    that is answered when a person does something.
    """

    def __init__(
        self,
        session: CDPSession,
        wanted: Callable[[], str | None],
        on_said: Callable[[overlay.Said | None], None],
    ) -> None:
        """`wanted` tells how to draw what is to be seen; None is nothing."""
        self._session = session
        self._wanted = wanted
        self._on_said = on_said
        self._frame = ""
        self._documents = 0
        self._world: int | None = None
        """Where it is drawn; None while the document is too new to be looked at."""
        self._drawn = False

    async def start(self) -> None:
        """Be there in the page's document and in every later one."""
        send = self._session.send
        self._session.on("Page.frameNavigated", self._on_navigated)
        await send("Page.enable")
        script = {"source": overlay.SCRIPT, "worldName": overlay.WORLD, "runImmediately": True}
        await send("Page.addScriptToEvaluateOnNewDocument", script)
        self._frame = (await send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        # The document that is there already is told of by this alone, and by this once.
        self._session.once("Page.lifecycleEvent", self._on_first)
        await send("Page.setLifecycleEventsEnabled", {"enabled": True})
        await send("Page.setLifecycleEventsEnabled", {"enabled": False})

    async def _on_first(self, _: dict[str, Any]) -> None:
        if self._documents == 0:
            await self._on_document()

    async def _on_navigated(self, event: dict[str, Any]) -> None:
        if event["frame"]["id"] == self._frame:
            await self._on_document()

    async def _on_document(self) -> None:
        self._documents += 1
        self._world, self._drawn = None, False
        document = self._documents
        await asyncio.sleep(GLANCE_S)
        with contextlib.suppress(PlaywrightError):
            world = await self._enter() if document == self._documents else None
            if world is not None and document == self._documents:
                self._world = world
                await self.apply()
                await self._listen(world)

    async def _enter(self) -> int | None:
        order = {"frameId": self._frame, "worldName": overlay.WORLD}
        async with asyncio.timeout(_PATIENCE_S):
            found = await self._session.send("Page.createIsolatedWorld", order)
        world: int = found["executionContextId"]
        return world

    async def apply(self) -> None:
        """Bring the page to what is to be seen now, unless it is too new to be looked at."""
        expression = self._wanted()
        if self._world is None or (expression is None and not self._drawn):
            return
        self._drawn = expression is not None
        order = {"expression": expression or overlay.REMOVE, "contextId": self._world}
        with contextlib.suppress(PlaywrightError):
            await within(_PATIENCE_S, self._session.send("Runtime.evaluate", order))

    async def seen(self, press: Seen) -> None:
        """Take in a press on the screen, if it was in the window in which this page is in front."""
        if self._drawn:
            with contextlib.suppress(PlaywrightError):
                await within(_PATIENCE_S, self._pressed(press))

    async def _pressed(self, press: Seen) -> None:
        send = self._session.send
        bounds = (await send("Browser.getWindowForTarget"))["bounds"]
        title = (await send("Target.getTargetInfo"))["targetInfo"]["title"]
        if not is_in(press, bounds, title):
            return
        expression = overlay.press(
            key=press.key, x=press.x, y=press.y, width=press.width, height=press.height
        )
        await send("Runtime.evaluate", {"expression": expression, "contextId": self._world})

    async def _listen(self, world: int) -> None:
        """Hear what people say in a document, until that is gone."""
        order = {
            "expression": overlay.LISTEN,
            "contextId": world,
            "awaitPromise": True,
            "returnByValue": True,
        }
        heard = 0
        while world == self._world:
            answer = await self._session.send("Runtime.evaluate", order)
            if "exceptionDetails" in answer:
                return
            self._on_said(overlay.parse(answer["result"].get("value")))
            heard += 1
            await asyncio.sleep(0 if heard < _HEARD else _PACE_S)


def is_in(press: Seen, bounds: Mapping[str, Any], title: str) -> bool:
    """Tell whether a press was in the window with these bounds, while this page was in front."""
    there = press.left, press.top, press.width, press.height
    here = (bounds.get(name, 0) for name in ("left", "top", "width", "height"))
    if any(abs(a - b) > _FRAME_PX for a, b in zip(there, here, strict=True)):
        return False
    return " ".join(press.title.split()).startswith(" ".join(title.split())[:_TITLE])


class Wishes(Protocol):
    """Hears what people at the browser want of a run, and what they do in its page."""

    def wanted(self, said: overlay.Stop | overlay.Control) -> None:
        """Somebody has pressed a button."""
        ...

    def acted(self, act: Act) -> None:
        """The person in control has done something in the page."""
        ...


class TabOverlay:
    """Shows one picture in all pages of a tab."""

    def __init__(self, worker: str) -> None:
        """`worker` is what people call the tab."""
        self._picture = overlay.Picture(worker=worker)
        self._since = 0.0
        self._bare = 0
        """How many want the pages without it now."""
        self._sheets: list[_Sheet] = []
        self._wishes: Wishes | None = None

    async def cover(self, session: CDPSession, *, guest: bool = False) -> None:
        """Show it in one more page, for as long as the session lasts.

        Args:
            session: With the page.
            guest: It is not the tab's own page but one that goes with its task.
        """
        sheet = _Sheet(session, lambda: self._wanted(guest=guest), self._on_said)
        self._sheets.append(sheet)
        session.on("close", lambda _: self._sheets.remove(sheet))
        with contextlib.suppress(PlaywrightError):
            await within(_START_S, sheet.start())

    async def begin(self, plan: Plan, wishes: Wishes) -> None:
        """Show that a run has begun; `wishes` hears what people want of it."""
        self._since, self._wishes = monotonic(), wishes
        self._picture = replace(
            self._picture.idle(),
            run=plan.attempt_id,
            task=plan.job_id,
            job=plan.name,
            steps=len(plan.steps),
        )
        await self._apply()

    async def step(self, number: int, name: str, *, live: bool) -> None:
        """Show which step runs, and whether its controls take clicks meanwhile."""
        self._picture = replace(self._picture, step=number, step_name=name, live=live)
        await self._apply()

    async def finish(self) -> None:
        """Show that nothing runs."""
        self._wishes = None
        self._picture = self._picture.idle()
        await self._apply()

    async def control(self, holder: Holder, by: str, asked: str) -> None:
        """Show who has control."""
        self._picture = replace(
            self._picture, holder=overlay.Holder(holder.value), by=by, asked=asked
        )
        await self._apply()

    async def say(self, text: str) -> None:
        """Show what somebody has to say, until the run ends."""
        self._picture = replace(self._picture, message=text)
        await self._apply()

    async def seen(self, press: Seen) -> None:
        """Take in a press that was seen on the screen; see `agent.chromium.screen`."""
        for sheet in tuple(self._sheets):
            await sheet.seen(press)

    async def drain(self) -> None:
        """Show that the agent takes nothing new."""
        self._picture = replace(self._picture, draining=True)
        await self._apply()

    @asynccontextmanager
    async def bare(self) -> AsyncIterator[None]:
        """Have nothing of it in the pages meanwhile; what is shown next puts it back."""
        self._bare += 1
        try:
            await self._apply()
            yield
        finally:
            self._bare -= 1

    async def dress(self) -> None:
        """Have it in the pages again at once, unless somebody else wants them without."""
        await self._apply()

    def _wanted(self, *, guest: bool) -> str | None:
        if self._bare:
            return None
        picture = replace(self._picture, guest=guest)
        return overlay.draw(picture, elapsed_s=monotonic() - self._since)

    async def _apply(self) -> None:
        for sheet in tuple(self._sheets):
            await sheet.apply()

    def _on_said(self, said: overlay.Said | None) -> None:
        match said:
            case overlay.Placed():
                self._picture = replace(self._picture, placed=said)
            case overlay.Acted(act=act) if self._wishes is not None:
                self._wishes.acted(act)
            case overlay.Stop(run=run) | overlay.Control(run=run):
                if self._wishes is not None and run == self._picture.run:
                    self._wishes.wanted(said)
            case overlay.Acted():
                pass  # of a run that has ended
            case _:
                _log.warning("overlay.garbled", worker=self._picture.worker)
