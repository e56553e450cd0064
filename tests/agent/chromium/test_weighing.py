"""What a browser weighs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent.chromium.discovery import Found
from tests.agent.chromium.rig import Rig

pytestmark = pytest.mark.browser


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    async with Rig() as one:
        yield one


async def test_the_browser_and_its_heaviest_renderer_are_weighed(rig: Rig) -> None:
    page = await rig.window()
    before = await rig.browser.weigh()
    assert before[0] > before[1] > 1
    await page.evaluate("globalThis.held = new Uint8Array(60 * 2**20).fill(1), 1")
    async with asyncio.timeout(5):
        while (after := await rig.browser.weigh())[1] < before[1] + 50:
            await asyncio.sleep(0.05)
    assert after[0] > before[0] + 50
    await rig.browser.kill()
    assert await rig.browser.weigh() == (0.0, 0.0)


async def test_a_tab_in_the_background_keeps_ticking(rig: Rig) -> None:
    behind = await rig.window()
    await behind.evaluate("globalThis.ticks = 0, setInterval(() => ticks++, 20), 1")
    await rig.browser.open_tab("w", "d")
    await rig.page("w", "d").bring_to_front()
    before = await behind.evaluate("ticks")
    # A tab that is throttled ticks once a second.
    async with asyncio.timeout(2):
        while await behind.evaluate("ticks") < before + 10:
            await asyncio.sleep(0.05)
