"""Headed: what would open a window of the desktop's does not."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from agent.chromium.discovery import Found
from agent.ports import TabGone, WindowGone
from farm.protocol.plan import BrowserOptions
from tests.agent.chromium.journal import Journal, goto, plan, script
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser

PAGE = "data:text/html,<title>Mine</title><input type=file id=file><h1>Hi</h1>"


@pytest.fixture
async def rig(full_browser: Found, display: str) -> AsyncIterator[Rig]:
    async with Rig(headless=False, env={**os.environ, "DISPLAY": display}) as one:
        yield one


async def test_neither_a_file_chooser_nor_printing_stops_a_job(rig: Rig) -> None:
    await rig.window()
    outcome = await rig.run(
        goto(PAGE),
        {"type": "click", "selector": "#file"},
        script("() => { window.print(); document.title = 'printed' }"),
        {"type": "assert", "text": "Hi"},
        {"type": "screenshot"},
    )
    assert outcome.outcome == "succeeded"
    assert rig.journal.notices("file_chooser_cancelled")


async def test_a_window_without_a_viewport_has_the_size_of_its_window(rig: Rig) -> None:
    page = await rig.window()
    inner, outer = await page.evaluate("[innerWidth, outerWidth]")
    assert abs(inner - outer) < 50


async def test_a_lean_browser_starts_no_renderer_for_its_address_bar(rig: Rig) -> None:
    page = await rig.window()
    assert page.context.browser is not None
    session = await page.context.browser.new_browser_cdp_session()
    targets = await session.send("Target.getTargets", {"filter": [{}]})
    assert [t["url"] for t in targets["targetInfos"] if "omnibox" in t["url"]] == []


async def test_a_tab_that_a_person_closes_ends_its_window(rig: Rig) -> None:
    page = await rig.window()
    await page.evaluate("() => { window.close() }")
    async with asyncio.timeout(PATIENCE_S):
        await rig.until(lambda: {TabGone("c"), WindowGone("w")} <= set(rig.events))
    assert "w" not in rig.browser._windows


async def test_two_windows_run_side_by_side(rig: Rig) -> None:
    await rig.window()
    await rig.browser.open_window("w2", "d", BrowserOptions())
    async with asyncio.TaskGroup() as group:
        runs = [
            group.create_task(rig.browser.run(c, plan(goto(PAGE)), Journal())) for c in ("c", "d")
        ]
    assert [run.result().outcome for run in runs] == ["succeeded", "succeeded"]
