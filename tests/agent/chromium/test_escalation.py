"""Cancel, close the page, close the window, kill the browser: each when the one before has failed.

Every test ends within the bound that the documentation states for it, and what is told afterwards
is true: a tab is said to be gone only when its page is.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import psutil
import pytest
from playwright.async_api import Page

from agent.chromium import processes
from agent.chromium.discovery import Found
from agent.clock import monotonic
from agent.machine import Machine, Profile
from agent.machine import events as ev
from agent.ports import (
    Bare,
    BrowserLost,
    BrowserUnavailable,
    Control,
    Denied,
    Evidence,
    Files,
    TabGone,
    WindowGone,
)
from agent.runner import Runner
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.protocol.messages import StepStarted
from farm.protocol.plan import BrowserOptions, Plan
from tests.agent.chromium.journal import goto, plan
from tests.agent.chromium.rig import FOR_EVER, PLAIN, Rig, reason, stubborn
from tests.agent.lending import NoLoans
from tests.agent.scene import HELLO, NoChannels, token
from tests.agent.test_runner import StandInLink, StandInUploads

pytestmark = pytest.mark.browser

CANCELLED_S, PAGE_S, WINDOW_S, KILLED_S = 3, 8, 13, 22
"""What each level may take at most, those before it included; see docs/hostile-pages.md."""
RELOADS = "data:text/html,<script>setInterval(() => location.reload(), 30)</script>"


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    async with Rig() as one:
        yield one


@contextmanager
def ending_within(seconds: float) -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < seconds


def renderers(browser: int) -> set[int]:
    below = psutil.Process(browser).children(recursive=True)
    return {one.pid for one in below if "--type=renderer" in one.cmdline()}


async def steps_that_say_when_they_stop(
    page: Page,
    plan: Plan,
    evidence: Evidence,
    *,
    denied: Callable[[], Sequence[Denied]],
    bare: Bare,
    control: Control,
    files: Files,
) -> Failure | None:
    await evidence.note(StepStarted(index=0, verb="wait", label="wait"))
    try:
        await page.wait_for_timeout(60_000)
    finally:
        await evidence.note(StepStarted(index=0, verb="stopped", label=str(page.is_closed())))
    return None


async def test_steps_that_can_be_cancelled_stop_before_their_page_is_closed(
    headless_browser: Found,
) -> None:
    async with Rig(run_plan=steps_that_say_when_they_stop) as rig:
        page = await rig.window()
        with ending_within(CANCELLED_S):
            outcome = await rig.run(FOR_EVER, timeouts={"job": 200})
        assert outcome.outcome == "timed_out"
        assert rig.journal.events[-1] == StepStarted(index=0, verb="stopped", label="False")
        assert page.is_closed()
        assert not lost(rig)


async def test_steps_that_take_no_notice_lose_their_page_and_no_more(
    headless_browser: Found,
) -> None:
    async with Rig(run_plan=stubborn) as rig:
        await rig.window()
        await rig.browser.open_tab("w", "d")
        with ending_within(PAGE_S):
            outcome = await rig.run(FOR_EVER, timeouts={"job": 200})
        assert outcome.page_gone
        assert rig.events == [TabGone("c")]
        assert not rig.page("w", "d").is_closed()


async def test_a_renderer_that_is_frozen_loses_its_page_and_no_more(rig: Rig) -> None:
    assert rig.info is not None
    await rig.window()
    before = renderers(rig.info.pid)
    await rig.browser.open_tab("w", "d")
    # One is the page's; another may be a spare one that the browser has begun meanwhile.
    frozen = renderers(rig.info.pid) - before
    for one in frozen:
        os.kill(one, signal.SIGSTOP)
    with ending_within(PAGE_S):
        outcome = await rig.browser.run("d", plan(FOR_EVER, timeouts={"job": 200}), rig.journal)
    assert outcome.page_gone
    assert rig.events == [TabGone("d")]
    await rig.until(lambda: any(not psutil.pid_exists(one) or zombie(one) for one in frozen))


async def test_a_page_that_does_not_close_loses_its_window_and_not_the_browser(rig: Rig) -> None:
    assert rig.info is not None
    page = await rig.window()
    await rig.browser.open_tab("w", "d")
    await rig.window("w2", "e")
    # The browser is deaf for as long as a page may take to close, and then it is not.
    os.kill(rig.info.pid, signal.SIGSTOP)
    with ending_within(WINDOW_S):
        async with asyncio.TaskGroup() as group:
            closing = group.create_task(rig.browser.close_tab("c"))
            await rig.until(lambda: rig.browser.escalations["close_window"] == 1)
            os.kill(rig.info.pid, signal.SIGCONT)
            await closing
    assert page.is_closed()
    assert {TabGone("c"), TabGone("d"), WindowGone("w")} == set(rig.events)
    assert not rig.page("w2", "e").is_closed()


@pytest.mark.slow
async def test_a_browser_that_is_frozen_in_the_middle_of_an_attempt_is_killed(rig: Rig) -> None:
    assert rig.info is not None
    await rig.window()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PLAIN), FOR_EVER, timeouts={"job": 3_000}))
        await rig.until(lambda: rig.journal.begun("wait"))
        os.kill(rig.info.pid, signal.SIGSTOP)
        with ending_within(KILLED_S):
            outcome = await run
    assert (outcome.outcome, reason(outcome)) == ("timed_out", Reason.JOB_TIMEOUT)
    assert outcome.page_gone
    assert not processes.anyone_left(set(), {rig.info.pid})
    assert [type(event) for event in rig.events] == [BrowserLost]
    assert rig.browser.escalations["kill_browser"] == 1


@pytest.mark.slow
async def test_a_driver_that_is_frozen_is_killed_with_its_browser(rig: Rig) -> None:
    assert rig.info is not None
    assert rig.browser._life is not None
    driver = rig.browser._life._driver.pid
    assert driver is not None
    await rig.window()
    os.kill(driver, signal.SIGSTOP)
    with ending_within(KILLED_S):
        outcome = await rig.run(FOR_EVER, timeouts={"job": 200})
    assert outcome.page_gone
    assert not processes.anyone_left(set(), {rig.info.pid, driver})
    assert lost(rig)


@pytest.mark.parametrize("what", ["window", "tab", "probe"])
async def test_what_is_being_opened_when_the_browser_is_killed_has_not_opened(
    rig: Rig, what: str
) -> None:
    assert rig.info is not None
    await rig.window()
    opening: dict[str, Callable[[], Awaitable[None]]] = {
        "window": lambda: rig.browser.open_window("w2", "e", BrowserOptions()),
        "tab": lambda: rig.browser.open_tab("w", "d"),
        "probe": rig.browser.probe,
    }
    os.kill(rig.info.pid, signal.SIGSTOP)
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, os.kill, rig.info.pid, signal.SIGKILL)
    with ending_within(KILLED_S), pytest.raises(BrowserUnavailable):
        await opening[what]()
    assert lost(rig)


async def test_pages_that_reload_without_end_are_closed_by_one_level_or_the_next(rig: Rig) -> None:
    await rig.window()
    numbers = count()
    for _ in range(3):
        tabs = [f"r{next(numbers)}" for _ in range(2)]
        if "w" not in rig.browser._windows:
            await rig.window()
        for tab in tabs:
            await rig.browser.open_tab("w", tab)
            await rig.page("w", tab).goto(RELOADS, wait_until="commit")
        pages = [rig.page("w", tab) for tab in tabs]
        with ending_within(WINDOW_S):
            async with asyncio.TaskGroup() as group:
                for tab in tabs:
                    group.create_task(rig.browser.close_tab(tab))
        assert all(page.is_closed() for page in pages)
    assert not lost(rig)


class TruthfulLink(StandInLink):
    """Looks, whenever the agent reports, whether what it says of the pages is true."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, Page] = {}
        self.lies: list[str] = []
        self.reports = 0

    async def send(self, message: wire.FromAgent) -> None:
        if isinstance(message, wire.Report):
            self.reports += 1
            clean = {c.context_id for c in message.contexts if c.clean}
            told = {c.context_id for c in message.contexts}
            for context_id, page in self.pages.items():
                if (context_id in clean or context_id not in told) and not page.is_closed():
                    self.lies.append(f"{context_id} in {message}")
        await super().send(message)


async def test_reports_say_that_a_tab_is_gone_or_clean_only_when_its_page_is_gone(
    headless_browser: Found,
) -> None:
    link = TruthfulLink()
    rig = Rig(run_plan=stubborn)
    epochs = count()
    runner = Runner(
        Machine(Profile(hello=HELLO, identity_idle_s=60), new_epoch=lambda: f"e{next(epochs)}"),
        browser=rig.browser,
        link=link,
        uploads=StandInUploads(),
        loans=NoLoans(),
        channels=NoChannels(),
        monotonic=monotonic,
        wall_clock=lambda: 0.0,
    )
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        running = group.create_task(runner.run())
        await link.hears(wire.Hello)
        link.says(
            wire.Welcome(
                epoch_number=1,
                capacity=wire.Capacity(max_concurrency=2),
                heartbeat_interval_s=2,
                window_s=60,
            )
        )
        opening = wire.OpenWindow(options=BrowserOptions())
        link.says(wire.Command(command_id="o", body=opening))
        opened = await link.hears(wire.Result)
        assert isinstance(opened, wire.Result)
        context_id = opened.value["context_id"]
        link.pages[context_id] = rig.page(opened.value["window_id"], context_id)
        await link.pages[context_id].goto(RELOADS, wait_until="commit")
        body = wire.RunPlan(plan=plan(FOR_EVER, timeouts={"job": 200}))
        command = {"context_id": context_id, "token": token(1)}
        link.says(wire.Command.model_validate({"command_id": "r", "body": body, **command}))
        ended = await link.hears(wire.Result)
        assert isinstance(ended, wire.Result)
        assert ended.page_gone
        assert link.pages[context_id].is_closed()
        release = wire.Release()
        link.says(wire.Command.model_validate({"command_id": "x", "body": release, **command}))
        await link.hears(wire.Report)
        runner.post(ev.StopRequested(0))
        await running
    assert link.reports >= 2
    assert link.lies == []


def lost(rig: Rig) -> bool:
    return any(isinstance(event, BrowserLost) for event in rig.events)


def zombie(pid: int) -> bool:
    process = processes.look(pid)
    return process is None or process.zombie
