"""A person at a headed browser, with a mouse and keys of the X server, and automation at work."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from Xlib import XK, X
from Xlib.display import Display
from Xlib.ext import xtest

from agent.chromium.control import TabControl
from agent.chromium.discovery import Found
from agent.chromium.screen import Seen, watching
from agent.machine.control import Holder, Move
from agent.ports import Outcome
from agent.xvfb import Xvfb
from farm.protocol.failures import Reason
from farm.protocol.messages import ControlMoved, HumanAct, StepEnded, StepStarted
from farm.protocol.plan import BrowserOptions
from tests.agent.chromium.conftest import Site, serving
from tests.agent.chromium.journal import Journal, goto, plan
from tests.agent.chromium.overlaid import Looking
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

KEY = "Control+Alt+Home"
PAGE = """<!doctype html><title>guarded</title><style>body { margin: 0 }</style>
<input id=i style='position: fixed; left: 0; top: 300px; width: 300px; height: 40px'>
<input id=c type=checkbox><button id=b style='position: fixed; left: 0; top: 400px;
width: 300px; height: 100px' onclick='this.textContent = ++n'>0</button>
<button id=m onmouseover='this.textContent = "over"'>m</button>
<form onsubmit='document.title = "sent"; return false'><input id=f></form>
<script>var n = 0; seen = []; for (const type of ['mousedown', 'keydown', 'wheel'])
addEventListener(type, e => seen.push(type), true)</script>"""


class Hands:
    """A mouse and keys of the X server."""

    def __init__(self, display: str) -> None:
        self._display = Display(display)

    def close(self) -> None:
        self._display.close()

    def click(self, x: float, y: float) -> None:
        xtest.fake_input(self._display, X.MotionNotify, x=round(x), y=round(y))
        for event in (X.ButtonPress, X.ButtonRelease):
            xtest.fake_input(self._display, event, 1)
        self._display.sync()

    def unfocus(self) -> None:
        """Have no window in front of the others: keys belong to the one under the pointer."""
        self._display.set_input_focus(X.PointerRoot, X.RevertToPointerRoot, X.CurrentTime)
        self._display.sync()

    def press(self, keys: str) -> None:
        names = {"Control": "Control_L", "Alt": "Alt_L"}
        symbols = [XK.string_to_keysym(names.get(key, key)) for key in keys.split("+")]
        codes = [self._display.keysym_to_keycode(symbol) for symbol in symbols]
        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)
        self._display.sync()


class Place:
    """One worker tab in a window that has a place on the screen of its own."""

    def __init__(self, rig: Rig, site: Site, hands: Hands, name: str) -> None:
        self.rig, self.site, self.hands, self.name = rig, site, hands, name
        self.journal = Journal()

    @property
    def page(self) -> Any:
        return self.rig.page(f"w-{self.name}", self.name)

    @property
    def control(self) -> TabControl:
        return self.rig.browser._windows[f"w-{self.name}"].tabs[self.name].control

    async def run(self, *steps: dict[str, Any], **keys: Any) -> Outcome:
        made = plan(*steps, egress={"allow": [self.site.allow]}, **keys)
        return await self.rig.browser.run(self.name, made, self.journal)

    def kinds(self) -> list[str]:
        return [e.kind for e in self.journal.events if isinstance(e, ControlMoved)]

    async def until(self, true: Callable[[], object], within_s: float = PATIENCE_S) -> None:
        async with asyncio.timeout(within_s):
            while not true():
                await asyncio.sleep(0.01)

    async def until_so(self, true: Callable[[], Awaitable[object]]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await true():
                await asyncio.sleep(0.02)

    async def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the page is on the screen."""
        left, top = await self.page.evaluate(
            "[screenX + (outerWidth - innerWidth) / 2, screenY + outerHeight - innerHeight]"
        )
        return left + x, top + y

    async def click(self, x: float, y: float) -> None:
        self.hands.click(*await self.at(x, y))

    async def press_control(self, which: str, done: Callable[[], object]) -> None:
        """Click a button of the overlay, and again where it was not there any more, until done."""
        looking = Looking(await self.page.context.new_cdp_session(self.page))
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                await self.until_so(lambda: _has(looking, which))
                await self.click(*await looking.centre("data-do", which))
                with contextlib.suppress(TimeoutError):
                    await self.until(done, within_s=3)

    async def doing(self, step: int) -> None:
        """Wait until a step has begun."""
        await self.until(
            lambda: any(isinstance(e, StepStarted) and e.index == step for e in self.journal.events)
        )


async def _has(looking: Looking, which: str) -> bool:
    try:
        left, _, right, _ = await looking.box("data-do", which)
    except Exception:  # noqa: BLE001 - it is not drawn yet, in whichever way that shows
        return False
    return right > left


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with serving() as one:
        one.pages["/g"] = PAGE
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def display() -> AsyncIterator[str]:
    xvfb = Xvfb()
    yield await xvfb.start(os.environ)
    await xvfb.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(full_browser: Found, display: str) -> AsyncIterator[Rig]:
    loop = asyncio.get_running_loop()
    env = {**os.environ, "DISPLAY": display}
    async with Rig(headless=False, env=env, guard=True) as one:

        def tell(press: Seen) -> None:
            loop.call_soon_threadsafe(one.browser.seen, press)

        with watching(display, key=KEY, tell=tell):
            yield one


@pytest_asyncio.fixture(loop_scope="module")
async def place(rig: Rig, site: Site, display: str) -> AsyncIterator[Place]:
    hands = Hands(display)
    one = Place(rig, site, hands, "t")
    await rig.browser.open_window("w-t", "t", BrowserOptions())
    yield one
    await rig.browser.close_window("w-t")
    hands.close()


async def test_a_persons_input_does_not_reach_the_page_and_automations_does(place: Place) -> None:
    acts: list[dict[str, Any]] = [
        {"type": "click", "selector": "#b"},
        {"type": "hover", "selector": "#m"},
        {"type": "type", "selector": "#i", "text": "ab"},
        {"type": "press", "selector": "#i", "key": "c"},
        {"type": "press", "key": "d"},
        {"type": "check", "selector": "#c"},
        {"type": "fill", "selector": "#c", "value": "no"},
        {"type": "fill", "selector": "#f", "value": "x", "submit": True},
    ]
    assert (await place.run(goto(f"{place.site.url}/g"), *acts)).outcome == "succeeded"
    found = "[n, m.textContent, i.value, c.checked, f.value, document.title]"
    expected = [1, "over", "abcd", False, "x", "sent"]
    assert await place.page.evaluate(found) == expected
    await place.page.evaluate("seen = []")
    place.journal = Journal()
    async with asyncio.TaskGroup() as group:
        group.create_task(place.run({"type": "wait", "ms": 600}))
        await place.doing(0)
        await place.click(150, 450)
        await place.click(150, 320)
        place.hands.press("x")
    assert await place.page.evaluate("seen") == []
    assert await place.page.evaluate(found) == expected


async def test_who_takes_over_by_a_button_works_in_the_page_and_hands_it_back(
    place: Place,
) -> None:
    async with asyncio.TaskGroup() as group:
        steps: list[dict[str, Any]] = [goto(f"{place.site.url}/g"), {"type": "wait", "ms": 5000}]
        check: dict[str, Any] = {"type": "assert", "selector": "#b", "text": "1"}
        running = group.create_task(place.run(*steps, check))
        await place.doing(1)
        await place.press_control("hands", lambda: "taking_over" in place.kinds())
        await place.until(lambda: place.control.holder is Holder.HUMAN)
        await place.click(150, 450)
        await place.click(150, 320)
        for key in "secret":
            place.hands.press(key)
        await place.until_so(lambda: place.page.evaluate("i.value === 'secret'"))
        await place.press_control("hands", lambda: "handed_back" in place.kinds())
        outcome = await running
    assert outcome.outcome == "succeeded"
    assert place.kinds() == ["taking_over", "taken_over", "handed_back"]
    acts = [e.act for e in place.journal.events if isinstance(e, HumanAct)]
    assert set(acts) == {"pointer", "key"}
    assert acts.count("key") <= 3
    told = json.dumps([e.model_dump(mode="json") for e in place.journal.events])
    assert "secret" not in told
    ended = [e.index for e in place.journal.events if isinstance(e, StepEnded)]
    assert ended == [0, 1, 2]


async def test_the_key_takes_over_the_tab_under_the_pointer_and_hands_it_back(
    place: Place, rig: Rig
) -> None:
    await rig.browser.open_window("w-u", "u", BrowserOptions())
    other = Place(rig, place.site, place.hands, "u")
    session = await other.page.context.new_cdp_session(other.page)
    window = (await session.send("Browser.getWindowForTarget"))["windowId"]
    bounds = {"windowId": window, "bounds": {"left": 900, "top": 0, "width": 600, "height": 700}}
    await session.send("Browser.setWindowBounds", bounds)
    steps = [goto(f"{place.site.url}/g"), *[{"type": "wait", "ms": 100}] * 500]
    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one.run(*steps)) for one in (other, place)]
        await other.doing(1)
        await place.doing(1)
        # Under the guard the click does nothing; it leaves the pointer there.
        await other.until_so(lambda: _place_is(other, 900))
        await other.click(150, 450)
        await other.until_so(lambda: _frame_is_there(other))
        place.hands.unfocus()
        place.hands.press(KEY)
        await other.until(lambda: other.control.holder is Holder.HUMAN)
        assert place.control.holder is Holder.AUTOMATION
        place.hands.press(KEY)
        await other.until(lambda: other.control.holder is Holder.AUTOMATION)
        for run in runs:
            run.cancel()
    assert (place.kinds(), other.kinds()) == ([], ["taking_over", "taken_over", "handed_back"])
    await rig.browser.close_window("w-u")


async def _place_is(place: Place, left: int) -> bool:
    return bool(await place.page.evaluate(f"Math.abs(screenX - {left}) < 3"))


async def _frame_is_there(place: Place) -> bool:
    return bool(await place.page.evaluate("document.documentElement.children.length === 3"))


async def test_a_paused_run_waits_without_its_time_and_is_stopped_by_a_click(place: Place) -> None:
    timeouts: dict[str, int] = {"job": 1500, "step": 1500, "navigation": 1500}
    async with asyncio.TaskGroup() as group:
        steps: list[dict[str, Any]] = [goto(f"{place.site.url}/g"), {"type": "wait", "ms": 100}]
        running = group.create_task(place.run(*steps, *steps, timeouts=timeouts))
        await place.doing(0)
        place.control.move(Move.PAUSE, "anna")
        await place.until(lambda: place.control.holder is Holder.PAUSED)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running), 2)
        place.control.move(Move.RESUME, "anna")
        place.control.move(Move.PAUSE, "anna")
        await place.until(lambda: place.control.holder is Holder.PAUSED)
        await place.press_control("stop", running.done)
        outcome = await running
    assert outcome.outcome == "cancelled"
    assert outcome.failure is not None
    assert outcome.failure.detail == "a person stopped it in the browser"


async def test_a_step_asks_for_a_person_who_comes_or_does_not(place: Place) -> None:
    human: dict[str, Any] = {"type": "human", "message": "Solve it"}
    async with asyncio.TaskGroup() as group:
        running = group.create_task(place.run(goto(f"{place.site.url}/g"), human))
        await place.until(lambda: place.control.asked == "Solve it")
        looking = Looking(await place.page.context.new_cdp_session(place.page))
        await place.until_so(lambda: _says(looking, "Solve it", "human has control", "Hand back"))
        await place.click(150, 450)
        await place.until_so(lambda: place.page.evaluate("n === 1"))
        await place.press_control("hands", lambda: "handed_back" in place.kinds())
        assert (await running).outcome == "succeeded"
    outcome = await place.run(human | {"timeout": 300})
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.HUMAN_TIMEOUT
    assert "asked to: Solve it" in outcome.failure.detail


async def _says(looking: Looking, *texts: str) -> bool:
    return set(texts) <= set(await looking.texts())
