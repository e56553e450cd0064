"""A run that is held, and what ends it meanwhile; without windows."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from agent.chromium.control import TabControl
from agent.chromium.screen import Seen
from agent.machine.control import Holder, Move, OutOfPlaceError
from agent.ports import Outcome
from farm.protocol.failures import Reason
from farm.protocol.messages import Intervene, Intervention, Token
from farm.protocol.plan import BrowserOptions
from tests.agent.chromium.rig import PLAIN, Rig, reason

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("headless_browser")]

STEPS = ({"type": "goto", "url": PLAIN}, {"type": "wait", "ms": 50})


def wanted(kind: Intervention) -> Intervene:
    token = Token(store_epoch=1, counter=1)
    return Intervene(intervention_id="i", command_id="c", token=token, kind=kind, by="anna")


def control(rig: Rig) -> TabControl:
    return rig.browser._windows["w"].tabs["c"].control


async def held(rig: Rig, group: asyncio.TaskGroup) -> "asyncio.Task[Outcome]":
    """Begin a run and pause it."""
    await rig.window()
    running = group.create_task(rig.run(*STEPS))
    await rig.until(lambda: rig.journal.begun("goto"))
    await rig.browser.intervene("c", wanted("pause"))
    await rig.until(lambda: control(rig).holder is Holder.PAUSED)
    return running


async def test_a_run_that_nobody_lets_go_on_fails_by_name() -> None:
    async with Rig(longest_pause_s=0.3) as rig, asyncio.TaskGroup() as group:
        outcome = await (await held(rig, group))
    assert reason(outcome) is Reason.PAUSED_TOO_LONG
    assert outcome.failure is not None
    assert outcome.failure.detail == "held by anna; nobody let it go on within 0.3 s"
    assert outcome.page_gone


async def test_a_step_that_asks_in_vain_leaves_a_pause_that_has_an_end() -> None:
    human = {"type": "human", "message": "Solve it", "timeout": 600, "optional": True}
    async with Rig(longest_pause_s=0.3) as rig, asyncio.TaskGroup() as group:
        await rig.window()
        running = group.create_task(rig.run(human, *STEPS))
        await rig.until(lambda: control(rig).asked)
        control(rig).move(Move.TAKE_OVER, "anna")
        control(rig).move(Move.LEAVE, "anna")  # as who watches from elsewhere, and vanishes
        outcome = await running
    assert reason(outcome) is Reason.PAUSED_TOO_LONG


@pytest.mark.parametrize("way", ["asked", "button", "farm"])
async def test_a_tab_that_a_person_had_is_not_made_clean_in_place(way: str) -> None:
    async with Rig() as rig, asyncio.TaskGroup() as group:
        await rig.browser.open_window("w", "c", BrowserOptions(), resets=True)
        human = {"type": "human", "message": "Solve it"}
        steps = ({"type": "goto", "url": PLAIN}, {"type": "wait", "ms": 200})
        running = group.create_task(rig.run(*steps, *([human] if way == "asked" else steps)))
        await rig.until(lambda: rig.journal.begun("goto"))
        if way == "button":
            control(rig).move(Move.TAKE_OVER, "somebody at the browser")
        elif way == "farm":
            await rig.browser.intervene("c", wanted("takeover"))
        await rig.until(lambda: control(rig).holder is Holder.HUMAN)
        control(rig).move(Move.HAND_BACK, "anna")
        assert (await running).outcome == "succeeded"
        assert not await rig.browser.reset("c")


async def test_a_click_that_hands_back_does_not_count_once_more_as_seen_on_the_screen() -> None:
    click = Seen(x=1, y=1, left=0, top=0, width=800, height=600, title="plain", key=False)
    async with Rig() as rig, asyncio.TaskGroup() as group:
        await rig.window()
        running = group.create_task(rig.run(*STEPS, {"type": "human", "message": "Solve it"}))
        await rig.until(lambda: control(rig).holder is Holder.HUMAN)
        pressed = rig.browser._windows["w"].tabs["c"].pressed
        rig.browser.seen(click)
        assert pressed.empty()
        rig.browser.seen(replace(click, key=True))
        control(rig).move(Move.HAND_BACK, "anna")
        rig.browser.seen(click)
        assert pressed.qsize() == 1
        assert (await running).outcome == "succeeded"


async def test_a_run_that_is_held_can_be_cancelled_and_its_tab_is_closed() -> None:
    async with Rig() as rig, asyncio.TaskGroup() as group:
        running = await held(rig, group)
        page = rig.page()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert page.is_closed()


async def test_a_message_has_nobody_to_read_it_and_an_idle_tab_nothing_to_hold() -> None:
    async with Rig() as rig:
        await rig.window()
        with pytest.raises(KeyError):
            await rig.browser.intervene("c", wanted("message"))
        with pytest.raises(OutOfPlaceError):
            await rig.browser.intervene("c", wanted("pause"))
        with pytest.raises(KeyError):
            await rig.browser.intervene("gone", wanted("pause"))
