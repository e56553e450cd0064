"""Two workers' windows beside each other on one screen, and a person who clicks in both."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page

from agent.chromium.discovery import Found
from farm.protocol.plan import BrowserOptions, WindowBounds
from tests.agent.chromium.desktop import Desktop
from tests.agent.chromium.overlaid import Looking
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PAGE = (
    "data:text/html,<title>{0}</title><body style='margin:0;height:100vh' "
    "onclick='++n' onkeydown='keys %2B= event.key'><h1>{0}</h1>"
    "<script>var n = 0, keys = ''</script>"
)
TOP_LEFT = "[screenX + outerWidth - innerWidth, screenY + outerHeight - innerHeight]"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desktop() -> AsyncIterator[Desktop]:
    async with Desktop() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def rig(full_browser: Found, desktop: Desktop) -> AsyncIterator[Rig]:
    async with Rig(headless=False, env=desktop.env) as one:
        yield one


async def opened(rig: Rig, name: str, left: int) -> Page:
    bounds = WindowBounds(left=left, top=50, width=700, height=600)
    await rig.browser.open_window(f"W{name}", f"T{name}", BrowserOptions(bounds=bounds))
    page = rig.page(f"W{name}", f"T{name}")
    await page.goto(PAGE.format(name))
    await page.wait_for_function(f"Math.abs(screenX - {left}) < 30 && outerWidth < 720")
    return page


async def test_what_a_person_does_in_one_window_reaches_its_page_and_no_other(
    rig: Rig, desktop: Desktop
) -> None:
    pages = [await opened(rig, "1", 20), await opened(rig, "2", 780)]
    for turn, page in enumerate((pages[0], pages[1], pages[0]), start=1):
        left, top = await page.evaluate(TOP_LEFT)
        await desktop.click(left + 200, top + 300)
        await page.wait_for_function(f"n === {(turn + 1) // 2}")
        await desktop.press(str(turn))
        await page.wait_for_function(f"keys.endsWith('{turn}')")
    assert [await page.evaluate("[n, keys]") for page in pages] == [[2, "13"], [1, "2"]]
    labels = [await _label(page) for page in pages]
    assert labels == ["W1 · T1", "W2 · T2"]


async def test_the_panel_of_one_window_is_moved_in_it_alone(rig: Rig, desktop: Desktop) -> None:
    pages = [await opened(rig, "1", 20), await opened(rig, "2", 780)]
    looks = [Looking(await page.context.new_cdp_session(page)) for page in pages]
    for page in pages:
        await _label(page)
    before = [await look.box("role", "group") for look in looks]
    left, top = await pages[0].evaluate(TOP_LEFT)
    x, y = await looks[0].centre("data-do", "move")
    at = [str(round(value)) for value in (left + x, top + y, left + 100, top + 400)]
    await desktop.xdotool(
        *("mousemove", at[0], at[1], "mousedown", "1"),
        *("mousemove", at[2], at[3], "mousemove_relative", "1", "1", "mouseup", "1"),
    )
    async with asyncio.timeout(PATIENCE_S):
        while (await looks[0].box("role", "group"))[1] < before[0][1] + 100:
            await asyncio.sleep(0.05)
    assert await looks[1].box("role", "group") == before[1]
    assert await pages[0].evaluate("n") == 0


async def test_a_window_that_opens_does_not_take_what_a_person_types_elsewhere(
    rig: Rig, desktop: Desktop
) -> None:
    await rig.window()
    worker = await desktop.focused()
    await desktop.press("ctrl+n")
    theirs = await desktop.until(desktop.focused, lambda window: window not in (worker, "1", ""))
    await rig.browser.open_window("W1", "T1", BrowserOptions())
    assert await desktop.focused() == theirs
    async with asyncio.TaskGroup() as group:
        for name in ("2", "3"):
            opening = rig.browser.open_window(f"W{name}", f"T{name}", BrowserOptions())
            group.create_task(opening)
    assert await desktop.focused() == theirs
    await desktop.press("ctrl+t")  # what is typed does arrive there
    async with asyncio.timeout(PATIENCE_S):
        while not [w for w in await rig.browser.look() if w.window_id is None and len(w.tabs) == 2]:
            await asyncio.sleep(0.05)


async def _label(page: Page) -> str:
    look = Looking(await page.context.new_cdp_session(page))
    async with asyncio.timeout(PATIENCE_S):
        while not (texts := await look.texts()):
            await asyncio.sleep(0.05)
    return texts[0]
