"""What a browser weighs."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from agent.chromium.discovery import Found
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

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
    async with asyncio.timeout(PATIENCE_S):
        while (after := await rig.browser.weigh())[1] < before[1] + 50:
            await asyncio.sleep(0.05)
    assert after[0] > before[0] + 50
    await rig.browser.kill()
    assert await rig.browser.weigh() == (0.0, 0.0)


async def test_a_tab_in_the_background_keeps_ticking(rig: Rig) -> None:
    behind = await rig.window()
    await behind.evaluate(
        "globalThis.ticks = [], setInterval(() => ticks.push(performance.now()), 20), 1"
    )
    await rig.browser.open_tab("w", "d")
    await rig.page("w", "d").bring_to_front()
    before = await behind.evaluate("ticks.length")
    async with asyncio.timeout(PATIENCE_S):
        while len(ticks := (await behind.evaluate("ticks"))[before:]) < 20:
            await asyncio.sleep(0.05)
    # A tab that is throttled ticks once a second.
    assert min(later - earlier for earlier, later in pairwise(ticks[5:])) < 500
