"""A run that is held, and what ends it meanwhile; without windows."""

import asyncio
import contextlib

import pytest

from agent.chromium.control import TabControl
from agent.machine.control import Holder, OutOfPlaceError
from agent.ports import Outcome
from farm.protocol.failures import Reason
from farm.protocol.messages import Intervene, Intervention, Token
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
