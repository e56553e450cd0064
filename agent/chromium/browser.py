"""`agent.ports.Browser` by Playwright: one life after another, and never an endless wait."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Literal, assert_never

import structlog
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError

from agent.chromium.attempt import Attempt, RunPlan
from agent.chromium.borrowing import Borrowing
from agent.chromium.control import LONGEST_S, Guarding
from agent.chromium.discovery import find
from agent.chromium.focus import Focus
from agent.chromium.launch import Life
from agent.chromium.launching import turn
from agent.chromium.live import Watch
from agent.chromium.recording import Recordings, Studio
from agent.chromium.resetting import Unproven
from agent.chromium.screen import Seen
from agent.chromium.shielding import to_the_end, within
from agent.chromium.sight import Sight, guessed
from agent.chromium.tabs import Tab
from agent.chromium.weighing import weigh
from agent.chromium.windows import CLOSE_S, Window
from agent.chromium.workspace import sweep
from agent.machine.control import Move
from agent.ports import (
    BorrowRefused,
    BrowserEvent,
    BrowserInfo,
    BrowserLost,
    BrowserUnavailable,
    Channel,
    ChannelClosed,
    Evidence,
    Lender,
    Outcome,
    SeenWindow,
    StaleAssignment,
    Stirred,
    WindowGone,
)
from agent.steps.run import run_plan
from farm.protocol.failures import Failure, Reason
from farm.protocol.live import Closed
from farm.protocol.messages import Intervene
from farm.protocol.plan import BrowserOptions, Plan

_log = structlog.get_logger(__name__)
_OPEN_S = 30.0
_PROBE_S = 15.0

Level = Literal["close_window", "kill_browser"]


class ChromiumBrowser:
    """Implements `agent.ports.Browser`."""

    def __init__(
        self,
        *,
        headless: bool,
        overlay: bool = True,
        guard: bool = False,
        longest_pause_s: float = LONGEST_S,
        env: Mapping[str, str],
        executable: str | None = None,
        sandbox: bool | None = None,
        slow_mo_ms: float = 0,
        keep_open: bool = False,
        may_act: Callable[[], bool] = lambda: True,
        ffmpeg: str | None = None,
        run_plan: RunPlan = run_plan,
    ) -> None:
        """Choose what to start.

        Args:
            headless: Without windows.
            overlay: Show people in each tab what it does; without windows there is none.
            guard: Keep people's input away from worker tabs while automation has control.
            longest_pause_s: So long a run may be paused, or in a person's hands, at a time.
            env: The agent's environment; what Chromium gets of it is an allow-list. Headed use
                needs `DISPLAY` in it.
            executable: A browser to use and no other.
            sandbox: Demand or refuse Chromium's own sandbox; None takes it where it works.
            slow_mo_ms: A pause before each thing done to a page, for people who watch.
            keep_open: Leave the windows of jobs that have ended, for a person to look at, until
                `kill`. A job that fails in one is not tried again: its page is still there.
            may_act: Whether the farm can't have taken us for gone; while it says no, no page
                reaches the network.
            ffmpeg: What encodes videos, see `find_ffmpeg`; without it there are none.
            run_plan: What runs the steps.
        """
        self._headless = headless
        self._overlay = overlay and not headless
        self._guarding = Guarding(guard=guard, longest_s=longest_pause_s)
        self._env = env
        self._executable = executable
        self._sandbox = sandbox
        self._slow_mo_ms = slow_mo_ms
        self._keep_open = keep_open
        self._may_act = may_act
        self._ffmpeg = ffmpeg
        self._run_plan = run_plan
        self._life: Life | None = None
        self._windows: dict[str, Window] = {}
        self._dead: list[Window] = []
        self._sight: Sight | None = None
        """Of the windows of a headed browser."""
        self._seen: tuple[SeenWindow, ...] = ()
        self._focus = Focus({} if headless else env)
        self._tell: Callable[[BrowserEvent], None] = lambda _: None
        self.escalations: Counter[Level] = Counter()
        """How often one means of ending a tab has failed and the next one had to be used."""

    async def start(self, tell: Callable[[BrowserEvent], None]) -> BrowserInfo:
        """Begin a life; see the port."""
        await self.kill()
        for path in await asyncio.to_thread(sweep):
            _log.info("workspace.swept", path=str(path))
        found = await find(
            headless=self._headless,
            executable=self._executable,
            env=self._env,
            sandbox=self._sandbox,
        )
        life = self._life = Life(
            found, headless=self._headless, env=self._env, slow_mo_ms=self._slow_mo_ms
        )
        self._tell = tell
        async with turn():
            info = await life.start(lambda detail: self._on_lost(life, detail))
        try:
            await self.probe()
            if not self._headless:
                stirred = lambda: self._on_event(life, Stirred())  # noqa: E731
                self._sight = await Sight.open(life.browser, stirred)
        except BaseException as error:
            await to_the_end(self.kill())
            if isinstance(error, PlaywrightError | TimeoutError | RuntimeError):
                reason = f"{found.executable} shows no page: {error}"
                raise BrowserUnavailable(reason) from error
            raise
        return info

    async def open_window(
        self, window_id: str, context_id: str, options: BrowserOptions, *, resets: bool = False
    ) -> None:
        """Open a window with one tab; see the port."""
        life = self._living()
        window = Window(window_id, lambda event: self._on_event(life, event), may_act=self._may_act)
        self._windows[window_id] = window

        async def opening() -> None:
            await window.open(life.browser, options, headed=not self._headless)
            tab = await window.open_tab(context_id, overlay=self._overlay, guarding=self._guarding)
            if options.bounds is not None:
                await tab.place(options.bounds)
            if resets:
                tab.traces.watch(tab.page)

        try:
            async with self._focus.kept():
                await to_the_end(self._bounded(life, opening()), name="window.open")
        except BaseException:
            await to_the_end(self._end_window(window_id))
            raise

    async def open_tab(self, window_id: str, context_id: str) -> None:
        """Open one more tab in a window; see the port."""
        life, window = self._living(), self._windows[window_id]
        opening = window.open_tab(context_id, overlay=self._overlay, guarding=self._guarding)
        try:
            await to_the_end(self._bounded(life, opening), name="tab.open")
        except asyncio.CancelledError:
            await to_the_end(self._end_tab(context_id))
            raise

    async def run(
        self, context_id: str, plan: Plan, evidence: Evidence, lender: Lender | None = None
    ) -> Outcome:
        """Run a plan on a tab; see the port."""
        place = self._place(context_id)
        if place is None:
            return _refused(Reason.PAGE_CLOSED, "the tab was gone before the attempt began")
        window, tab = place
        loan = Borrowing(tab, plan.borrows, lender)
        tab.begin_task()
        try:
            refused = await _begin(window, context_id, plan, loan)
            if refused is not None:
                await to_the_end(self._end_tab(context_id))
                return refused
            recordings = self._recordings(window, tab, plan, evidence)
            attempt = Attempt(tab, plan, evidence, self._run_plan, self._living().place, recordings)
            outcome = await attempt.run(lambda: self._end_tab(context_id))
            outcome = await loan.give_back(outcome)
        except asyncio.CancelledError:
            window.abandon(context_id)
            await to_the_end(self._end_tab(context_id))
            raise
        finally:
            window.finish(context_id)
        if self._keep_open:
            await tab.control.open_up()
        if outcome.outcome != "succeeded" and self._keep_open:
            return replace(outcome, page_gone=False)
        if outcome.outcome != "succeeded":
            await to_the_end(self._end_tab(context_id))
            return replace(outcome, page_gone=True)
        if plan.reuse and not await tab.close_extras():
            await to_the_end(self._end_window(window.window_id))
            return replace(outcome, page_gone=True)
        return outcome

    def _recordings(
        self, window: Window, tab: Tab, plan: Plan, evidence: Evidence
    ) -> Recordings | None:
        if plan.record is None or self._life is None:
            return None
        studio = Studio(traces=self._life.traces, ffmpeg=self._ffmpeg)
        return studio.recordings(plan.record, tab, plan.attempt_id, evidence, alone=window.alone)

    async def intervene(self, context_id: str, wanted: Intervene) -> None:
        """Do what a person wants; see the port."""
        place = self._place(context_id)
        if place is None:
            raise KeyError(context_id)
        _, tab = place
        match wanted.kind:
            case "pause":
                tab.control.move(Move.PAUSE, wanted.by)
            case "resume":
                tab.control.move(Move.RESUME, wanted.by)
            case "takeover":
                tab.control.move(Move.TAKE_OVER, wanted.by)
            case "hand_back":
                tab.control.move(Move.HAND_BACK, wanted.by)
            case "message" if tab.overlay is not None:
                await tab.overlay.say(f"{wanted.by}: {wanted.text}")
            case "message":
                raise KeyError(context_id)
            case _ as unreachable:
                assert_never(unreachable)

    async def look(self) -> tuple[SeenWindow, ...]:
        """See which windows and tabs there are; see the port."""
        life = self._life
        shown = [one for window in tuple(self._windows.values()) for one in window.shown()]
        if self._sight is None:
            self._seen = guessed(shown, apart=life is not None and life.is_shell)
        else:
            with contextlib.suppress(PlaywrightError, TimeoutError):
                seen = await self._sight.look(shown)
                if life is self._life:
                    self._seen = seen
        return self._seen

    def seen(self, press: Seen) -> None:
        """Take in what somebody has pressed on the screen, where input is kept out of pages."""
        for window in self._windows.values():
            for tab in window.tabs.values():
                if tab.happenings is None or tab.pressed.full():
                    continue
                # It must not count once more, on a button that means something else by then.
                if press.key or not tab.control.clicks_come_through_the_page:
                    tab.pressed.put_nowait(press)

    async def weigh(self) -> tuple[float, float]:
        """Weigh the browser; see the port."""
        if self._life is None or self._life.ended:
            return 0.0, 0.0
        weight = await asyncio.to_thread(weigh, self._life.groups())
        return weight.browser_mb, weight.renderer_mb

    async def reset(self, context_id: str) -> bool:
        """Make a tab as a new one; see the port."""
        place = self._place(context_id)
        if place is None or self._keep_open:
            return False
        window, _ = place
        try:
            await to_the_end(window.reset(context_id), name="tab.reset")
        except Unproven as error:
            _log.info("tab.not_reset", window_id=window.window_id, reason=str(error))
            return False
        return True

    async def close_tab(self, context_id: str) -> None:
        """Close a tab, with its window if it is the only one; see the port."""
        if not self._keep_open:
            await self._end_tab(context_id)

    async def close_window(self, window_id: str) -> None:
        """Close a window with all its tabs; see the port."""
        if not self._keep_open:
            await self._end_window(window_id)

    async def _end_tab(self, context_id: str) -> None:
        place = self._place(context_id)
        if place is None:
            return
        window, tab = place
        if len(window.tabs) > 1:
            if await self._close_page(tab):
                return
            self._escalate("close_window", window.window_id)
        await self._end_window(window.window_id)

    async def _close_page(self, tab: Tab) -> bool:
        await tab.close_extras()
        with contextlib.suppress(PlaywrightError):
            await within(CLOSE_S, tab.page.close())
        return tab.page.is_closed()

    async def _end_window(self, window_id: str) -> None:
        window, life = self._windows.get(window_id), self._life
        if window is None:
            return
        if not await window.close() and life is not None:
            self._escalate("kill_browser", window_id)
            life.lose(f"window {window_id} does not close")
            await life.kill()
        self._windows.pop(window_id, None)

    def _escalate(self, to: Level, window_id: str) -> None:
        self.escalations[to] += 1
        _log.warning("tab.stuck", window_id=window_id, then=to)

    async def watch(self, context_id: str, channel: Channel) -> None:
        """Show a tab to people, and do in it what they do; see the port."""
        place, life = self._place(context_id), self._life
        if place is None or life is None:
            gone = Closed(reason="tab_closed", detail="the tab closed before it could be watched")
            with contextlib.suppress(ChannelClosed):
                await channel.send(gone.model_dump_json())
            return
        _, tab = place
        try:
            await Watch(tab, channel, life.place).run()
        except Exception:  # noqa: BLE001 - who watches may never end what is watched
            _log.exception("live.broken", context_id=context_id)

    async def drain(self) -> None:
        """Show in every tab that the agent takes nothing new; see the port."""
        for window in tuple(self._windows.values()):
            for tab in tuple(window.tabs.values()):
                if tab.overlay is not None:
                    await tab.overlay.drain()

    async def probe(self) -> None:
        """Open a page, evaluate something, close it; see the port."""
        try:
            await self._show_a_page(self._living().browser)
        except PlaywrightError as error:
            raise BrowserUnavailable(f"the browser shows no page: {error.message}") from error

    async def _show_a_page(self, browser: PlaywrightBrowser) -> None:
        async with asyncio.timeout(_PROBE_S):
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto("data:text/html,<title>probe</title>")
                if await page.evaluate("document.title") != "probe":
                    raise RuntimeError("the page does not say what it was given")
            finally:
                with contextlib.suppress(PlaywrightError):
                    await within(CLOSE_S, context.close())

    async def kill(self) -> None:
        """End the browser with everything it started; see the port."""
        life, self._life = self._life, None
        self._lose_windows()
        if life is not None:
            await life.kill()
        dead, self._dead = self._dead, []
        for window in dead:
            await window.close()

    def _living(self) -> Life:
        if self._life is None or self._life.ended:
            raise BrowserUnavailable("the browser is not running")
        return self._life

    def _place(self, context_id: str) -> tuple[Window, Tab] | None:
        for window in self._windows.values():
            if (tab := window.tabs.get(context_id)) is not None:
                return window, tab
        return None

    async def _bounded(self, life: Life, work: Awaitable[object]) -> None:
        try:
            opened = await within(_OPEN_S, work)
        except PlaywrightError as error:
            # It ended, or was ended for what another page did, while it was opening this one.
            raise BrowserUnavailable(f"the browser opens no window: {error.message}") from error
        if not opened:
            life.lose("the browser opens no window")
            raise BrowserUnavailable("the browser opens no window")

    def _on_event(self, life: Life, event: BrowserEvent) -> None:
        if life is not self._life or life.ended:
            return
        if isinstance(event, WindowGone):
            self._windows.pop(event.window_id, None)
        self._tell(event)

    def _on_lost(self, life: Life, detail: str) -> None:
        if life is not self._life:
            return
        _log.warning("browser.lost", detail=detail)
        self._lose_windows()
        self._tell(BrowserLost(detail))

    def _lose_windows(self) -> None:
        theirs = sum(window.window_id is None for window in self._seen)
        if theirs:
            _log.warning("browser.took_user_windows", windows=theirs)
        self._seen, self._sight = (), None
        windows, self._windows = self._windows, {}
        for window in windows.values():
            window.lose()
            self._dead.append(window)


def _stain(tab: Tab, plan: Plan) -> None:
    """Keep a tab from being reset after what leaves more than pages do."""
    if plan.record is not None:
        tab.traces.stain("it was recorded")
    if plan.borrows is not None:
        tab.traces.stain("it had a saved identity or a proxy")


async def _begin(window: Window, context_id: str, plan: Plan, loan: Borrowing) -> Outcome | None:
    """Make a window ready for a run; return how it ends if that can't be."""
    _stain(window.tabs[context_id], plan)
    try:
        window.begin(context_id, plan.egress, await loan.take())
    except ValueError as error:
        return _refused(Reason.VALUE_INVALID, f"egress.allow or the proxy: {error}")
    except BorrowRefused as refused:
        return _refused(refused.reason, refused.detail)
    except StaleAssignment:
        return _refused(Reason.STALE_ASSIGNMENT, "the attempt has ended for the farm")
    return None


def _refused(reason: Reason, detail: str) -> Outcome:
    return Outcome(
        outcome="failed", failure=Failure(reason=reason, detail=detail[:2000]), page_gone=True
    )
