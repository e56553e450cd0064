"""Every window and tab there is, whoever has opened it; people's are opened by real keys."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from PIL import ImageGrab

from agent.chromium.discovery import Found
from agent.ports import SeenTab, SeenWindow, Stirred
from farm.protocol.plan import WindowBounds
from overlay import COLOURS, State
from tests.agent.chromium.desktop import Desktop
from tests.agent.chromium.journal import goto, script
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PAGE = "data:text/html,<title>work</title><h1>Work</h1>"
FOR_EVER = {"type": "wait", "ms": 60_000}
Windows = tuple[SeenWindow, ...]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desktop() -> AsyncIterator[Desktop]:
    async with Desktop() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def rig(full_browser: Found, desktop: Desktop) -> AsyncIterator[Rig]:
    async with Rig(headless=False, env=desktop.env) as one:
        yield one


async def sees(rig: Rig, good: Callable[[Windows], object]) -> Windows:
    """Look until it is so."""
    seen: Windows = ()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not good(seen):
                await asyncio.sleep(0.05)
                with contextlib.suppress(TimeoutError):  # one look on a busy machine
                    seen = await rig.browser.look()
    except TimeoutError:
        raise AssertionError(f"it never was so: {seen}") from None
    return seen


def theirs(windows: Windows) -> list[SeenWindow]:
    return [window for window in windows if window.window_id is None]


def tabs(windows: Windows) -> list[SeenTab]:
    return [tab for window in windows for tab in window.tabs]


async def test_windows_that_a_person_opens_are_theirs(rig: Rig, desktop: Desktop) -> None:
    await rig.window()
    await desktop.press("ctrl+n")
    await sees(rig, lambda seen: len(theirs(seen)) == 1)
    assert Stirred() in rig.events
    await desktop.press("ctrl+t")
    (window,) = theirs(await sees(rig, lambda seen: len(tabs(tuple(theirs(seen)))) == 2))
    assert sorted(tab.front for tab in window.tabs) == [False, True]
    assert all(tab.context_id is None and tab.opener is None for tab in window.tabs)
    assert window.bounds is not None
    assert window.bounds.width > 100
    await desktop.press("ctrl+shift+n")  # an incognito one
    seen = await sees(rig, lambda seen: len(theirs(seen)) == 2)
    (own,) = [window for window in seen if window.window_id == "w"]
    assert [(tab.context_id, tab.front) for tab in own.tabs] == [("c", True)]
    assert rig.page().context.pages == [rig.page()]
    assert (await rig.run(goto(PAGE))).outcome == "succeeded"
    await rig.browser.close_window("w")
    assert len(theirs(await rig.browser.look())) == 2
    await desktop.press("ctrl+w")
    await sees(rig, lambda seen: len(seen) == len(theirs(seen)) == 1)


async def test_nothing_is_drawn_on_what_a_person_owns(rig: Rig, desktop: Desktop) -> None:
    await rig.window()
    colour = bytes.fromhex(COLOURS[State.IDLE][1:])

    async def shown() -> int:
        screen = ImageGrab.grab(xdisplay=desktop.env["DISPLAY"]).convert("RGB")
        colours = screen.getcolors(1 << 24) or []
        return sum(count for count, found in colours if found == tuple(colour))

    await desktop.until(shown, lambda pixels: int(pixels) > 1000)
    # Where nothing of the worker's is, only the windows of the person can show something.
    await desktop.press("ctrl+n")
    await sees(rig, lambda seen: len(theirs(seen)) == 1)
    await desktop.press("ctrl+shift+n")
    await sees(rig, lambda seen: len(theirs(seen)) == 2)
    await rig.browser.close_window("w")
    await desktop.until(shown, lambda pixels: int(pixels) < 50)
    assert len(theirs(await rig.browser.look())) == 2


async def test_a_tab_that_a_person_opens_in_a_workers_window_is_the_tasks_and_goes_with_it(
    rig: Rig, desktop: Desktop
) -> None:
    page = await rig.window()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PAGE), FOR_EVER))
        await rig.until(lambda: rig.journal.begun("wait"))
        await desktop.press("ctrl+t")
        seen = await sees(rig, lambda seen: len(tabs(seen)) == 2)
        assert not theirs(seen)
        assert {(tab.context_id, tab.opener, tab.front) for tab in tabs(seen)} == {
            ("c", None, False),
            (None, "c", True),
        }
        await desktop.press("ctrl+Tab")
        await sees(rig, lambda seen: [t.front for t in tabs(seen) if t.context_id] == [True])
        run.cancel()
    assert page.is_closed()
    assert tabs(await rig.browser.look()) == []


async def test_popups_are_the_tasks_in_whatever_frame_and_their_crashes_show(rig: Rig) -> None:
    await rig.window()
    await rig.browser.open_tab("w", "d")
    opens = "() => { open('about:blank'); open('about:blank', 'x', 'width=300,height=300') }"
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PAGE), script(opens), FOR_EVER))
        seen = await sees(rig, lambda seen: len(tabs(seen)) == 4)
        assert [window.window_id for window in seen] == ["w", "w"]
        assert sorted(t.opener or "" for t in tabs(seen)) == ["", "", "c", "c"]
        assert [len([t for t in window.tabs if t.front]) for window in seen] == [1, 1]
        popup = list(rig.browser._windows["w"].tabs["c"].extras)[-1]
        session = await popup.context.new_cdp_session(popup)
        crash = group.create_task(session.send("Page.crash"))
        await sees(rig, lambda seen: any(tab.crashed and tab.opener for tab in tabs(seen)))
        crash.cancel()
        run.cancel()


async def test_a_window_is_where_it_was_asked_to_be(rig: Rig) -> None:
    wanted = WindowBounds(left=300, top=200, width=700, height=500)
    await rig.window(bounds=wanted)
    seen = await sees(rig, lambda seen: seen and seen[0].bounds and seen[0].bounds.left == 300)
    bounds = seen[0].bounds
    assert bounds is not None
    assert (bounds.width, bounds.height) == (700, 500)
    assert abs(bounds.top - 200) < 40  # its title bar


async def test_without_windows_popups_are_seen_too(headless_browser: Found) -> None:
    async with Rig() as rig:
        await rig.window()
        opens = script("() => { open('about:blank') }")
        async with asyncio.TaskGroup() as group:
            run = group.create_task(rig.run(goto(PAGE), opens, FOR_EVER))
            await rig.until(lambda: Stirred() in rig.events)
            seen = await sees(rig, lambda seen: len(tabs(seen)) == 2)
            assert [tab.opener for tab in tabs(seen)] == [None, "c"]
            run.cancel()
        assert tabs(await rig.browser.look()) == []
