"""Windows, tabs and attempts in a real browser; every wait has an end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from agent.chromium import processes
from agent.chromium.discovery import Found
from agent.clock import monotonic
from agent.ports import (
    BrowserLost,
    BrowserUnavailable,
    Outcome,
    TabCrashed,
    TabGone,
    WindowGone,
)
from farm.protocol.failures import Reason
from farm.protocol.plan import BrowserOptions, Geolocation, Viewport
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto, plan, script
from tests.agent.chromium.rig import FOR_EVER, PLAIN, Rig, reason, stubborn

pytestmark = pytest.mark.browser


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    async with Rig() as one:
        yield one


async def test_a_success_leaves_the_tab_open_for_the_runner_to_close(rig: Rig) -> None:
    page = await rig.window()
    assert await rig.run(goto(PLAIN)) == Outcome(outcome="succeeded")
    assert not page.is_closed()
    await rig.browser.close_window("w")
    assert rig.events == [TabGone("c"), WindowGone("w")]
    await rig.browser.close_window("w")
    await rig.browser.close_tab("c")


async def test_a_failure_closes_the_tab_and_its_window_before_it_is_told(rig: Rig) -> None:
    page = await rig.window()
    outcome = await rig.run(goto(PLAIN), {"type": "assert", "text": "absent", "timeout": 100})
    assert outcome.page_gone
    assert reason(outcome) is Reason.ASSERTION_FAILED
    assert page.is_closed()
    assert rig.events == [TabGone("c"), WindowGone("w")]


async def test_a_failure_in_a_window_of_two_tabs_closes_one(rig: Rig) -> None:
    await rig.window()
    await rig.browser.open_tab("w", "d")
    outcome = await rig.run({"type": "click", "selector": "#no", "timeout": 100}, reuse=True)
    assert outcome.page_gone
    assert rig.events == [TabGone("c")]
    assert not rig.page("w", "d").is_closed()


async def test_tabs_of_one_window_share_an_identity_and_windows_do_not(
    rig: Rig, site: Site
) -> None:
    await rig.window()
    await rig.browser.open_tab("w", "d")
    await rig.window("w2", "e")
    allow = {"egress": {"allow": [site.allow]}}
    where = goto(site.url)
    set_ = script("document.cookie = 'a=1'")
    assert (await rig.run(where, set_, **allow)).outcome == "succeeded"
    for context_id, expected in (("d", "a=1"), ("e", "")):
        check = {"type": "assert", "var": "got", "equals": expected}
        read = script("document.cookie", var="got", effect="none")
        outcome = await rig.browser.run(context_id, plan(where, read, check, **allow), rig.journal)
        assert outcome.outcome == "succeeded"


async def test_a_window_has_the_options_it_was_opened_with(rig: Rig) -> None:
    page = await rig.window(
        viewport=Viewport(width=640, height=480), locale="de-DE", user_agent="Test/1"
    )
    seen = await page.evaluate("[innerWidth, innerHeight, navigator.language, navigator.userAgent]")
    assert seen == [640, 480, "de-DE", "Test/1"]


async def test_pages_see_the_place_the_time_and_the_taste_of_their_window(
    rig: Rig, site: Site
) -> None:
    page = await rig.window(
        viewport=Viewport(width=640, height=480),
        device_scale_factor=2,
        timezone="Asia/Kathmandu",
        color_scheme="dark",
        geolocation=Geolocation(latitude=27.7, longitude=85.3, accuracy=12),
        permissions=("geolocation",),
    )
    assert (await rig.run(goto(site.url), egress={"allow": [site.allow]})).outcome == "succeeded"
    seen = await page.evaluate(
        """async () => [
          devicePixelRatio,
          Intl.DateTimeFormat().resolvedOptions().timeZone,
          matchMedia('(prefers-color-scheme: dark)').matches,
          await new Promise((ok, no) => navigator.geolocation.getCurrentPosition(
            ({coords}) => ok([coords.latitude, coords.longitude, coords.accuracy]), no)),
          (await navigator.permissions.query({name: 'notifications'})).state,
        ]"""
    )
    assert seen == [2, "Asia/Katmandu", True, [27.7, 85.3, 12], "denied"]


async def test_a_hung_script_is_broken_off_and_still_photographed(rig: Rig) -> None:
    await rig.window()
    began = monotonic()
    outcome = await rig.run(goto(PLAIN), script("() => { for (;;); }", timeout=500))
    assert monotonic() - began < 15
    assert reason(outcome) is Reason.STEP_TIMEOUT
    assert outcome.page_gone
    assert sorted(rig.journal.files) == ["failure-1.html", "failure-1.png"]


async def test_the_jobs_time_ends_it_and_names_the_step(rig: Rig) -> None:
    await rig.window()
    outcome = await rig.run(goto(PLAIN), FOR_EVER | {"id": "long"}, timeouts={"job": 300})
    assert outcome.outcome == "timed_out"
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.step_index, outcome.failure.step) == (
        Reason.JOB_TIMEOUT,
        1,
        "long",
    )
    assert outcome.page_gone


async def test_a_page_that_hangs_by_itself_does_not_outlive_the_jobs_time(rig: Rig) -> None:
    await rig.window()
    hang = "data:text/html,<script>setTimeout(() => { for (;;); }, 50)</script>"
    outcome = await rig.run(goto(hang), FOR_EVER, timeouts={"job": 500})
    assert outcome.outcome == "timed_out"
    assert rig.events == [TabGone("c"), WindowGone("w")]


@pytest.mark.slow
async def test_steps_that_ignore_their_time_are_ended(headless_browser: Found) -> None:
    async with Rig(run_plan=stubborn) as rig:
        await rig.window()
        outcome = await rig.run({"type": "click", "selector": "#no", "timeout": 10})
        assert reason(outcome) is Reason.STEP_TIMEOUT
        assert outcome.page_gone


async def test_steps_that_ignore_a_cancellation_are_ended(headless_browser: Found) -> None:
    async with Rig(run_plan=stubborn) as rig:
        page = await rig.window()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            run = group.create_task(rig.run({"type": "click", "selector": "#no"}))
            await rig.until(lambda: rig.journal.begun("click"))
            run.cancel()
        assert run.cancelled()
        assert page.is_closed()


async def crash(page: Page) -> None:
    session = await page.context.new_cdp_session(page)
    with contextlib.suppress(PlaywrightError):
        await session.send("Page.crash")  # never answers


async def test_a_crash_is_told_at_once(rig: Rig) -> None:
    page = await rig.window()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PLAIN), FOR_EVER))
        await rig.until(lambda: rig.journal.begun("wait"))
        group.create_task(crash(page))
        outcome = await run
    assert reason(outcome) is Reason.PAGE_CRASHED
    assert rig.events[0] == TabCrashed("c")
    assert outcome.page_gone
    assert WindowGone("w") in rig.events


async def test_a_tab_that_somebody_closes_ends_its_attempt_and_its_window(rig: Rig) -> None:
    page = await rig.window()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PLAIN), FOR_EVER))
        await rig.until(lambda: rig.journal.begun("wait"))
        await page.close()
    assert reason(run.result()) is Reason.PAGE_CLOSED
    await rig.until(lambda: WindowGone("w") in rig.events)


@pytest.mark.parametrize("victim", ["browser", "driver"])
async def test_a_browser_that_dies_is_told_once_and_can_be_started_again(
    rig: Rig, victim: str
) -> None:
    await rig.window()
    assert rig.info is not None
    assert rig.browser._life is not None
    driver = rig.browser._life._driver.pid
    assert driver is not None
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PLAIN), FOR_EVER))
        await rig.until(lambda: rig.journal.begun("wait"))
        os.kill(rig.info.pid if victim == "browser" else driver, signal.SIGKILL)
    assert reason(run.result()) is Reason.BROWSER_LOST
    await rig.until(lambda: any(isinstance(e, BrowserLost) for e in rig.events))
    with pytest.raises(BrowserUnavailable):
        await rig.browser.open_window("w2", "d", BrowserOptions())
    ended = {rig.info.pid, driver}
    await rig.until(lambda: not processes.anyone_left(set(), ended))
    assert sum(isinstance(e, BrowserLost) for e in rig.events) == 1
    rig.events.clear()
    await rig.browser.start(rig.events.append)
    await rig.window()
    assert (await rig.run(goto(PLAIN))).outcome == "succeeded"
    assert rig.events == []


async def test_a_cancelled_attempt_has_closed_its_tab_before_it_ends(rig: Rig) -> None:
    page = await rig.window()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(rig.run(goto(PLAIN), FOR_EVER))
        await rig.until(lambda: rig.journal.begun("wait"))
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert page.is_closed()


async def test_a_page_that_reloads_itself_all_the_time_closes(rig: Rig, site: Site) -> None:
    site.pages["/"] = "<script>setInterval(() => location.reload(), 30)</script>"
    for _ in range(3):
        await rig.window()
        outcome = await rig.run(
            {"type": "goto", "url": site.url, "wait_until": "commit"},
            {"type": "assert", "text": "absent", "timeout": 100},
            egress={"allow": [site.allow]},
        )
        assert outcome.page_gone
    assert not any(isinstance(e, BrowserLost) for e in rig.events)


async def test_a_page_that_alerts_all_the_time_is_survived_and_noted_within_bounds(
    rig: Rig,
) -> None:
    await rig.window()
    alerting = "data:text/html,<script>setInterval(() => alert('again'), 5)</script>"
    asked = script("confirm('sure?')", var="answer")
    answered = {"type": "assert", "var": "answer", "equals": False}
    wait = {"type": "wait", "ms": 300}
    outcome = await rig.run(goto(alerting), asked, answered, wait)
    assert outcome.outcome == "succeeded"
    assert 2 <= len(rig.journal.notices("dialog")) <= 20


async def test_popups_are_kept_to_a_few_and_end_with_the_task(rig: Rig) -> None:
    page = await rig.window()
    many = "() => { for (let i = 0; i < 9; i++) window.open('about:blank') }"
    outcome = await rig.run_until(
        lambda: len(rig.journal.notices("popup_closed")) == 4,
        goto(PLAIN), script(many), reuse=True,
    )  # fmt: skip
    assert outcome.outcome == "succeeded"
    assert len(rig.journal.notices("popup_opened")) == 5
    assert len(rig.journal.notices("popup_closed")) == 4
    await rig.until(lambda: page.context.pages == [page])


@pytest.mark.parametrize("most", [0, 2])
async def test_a_job_may_open_as_many_popups_as_it_says(rig: Rig, most: int) -> None:
    await rig.window()
    many = "() => { for (let i = 0; i < 3; i++) window.open('about:blank') }"
    outcome = await rig.run_until(
        lambda: len(rig.journal.notices("popup_closed")) == 3 - most,
        goto(PLAIN), script(many), popups=most,
    )  # fmt: skip
    assert outcome.outcome == "succeeded"
    assert len(rig.journal.notices("popup_opened")) == most
    assert len(rig.journal.notices("popup_closed")) == 3 - most


async def test_a_popup_between_attempts_is_closed(rig: Rig) -> None:
    page = await rig.window()
    await page.evaluate("() => { window.open('about:blank') }")
    await rig.until(lambda: page.context.pages == [page])


async def test_a_download_is_cancelled_and_noted(rig: Rig) -> None:
    await rig.window()
    link = "data:text/html,<a id=a download=big.bin href='data:application/octet-stream,x'>x</a>"
    outcome = await rig.run_until(
        lambda: rig.journal.notices("download_cancelled"),
        goto(link), {"type": "click", "selector": "#a"},
    )  # fmt: skip
    assert outcome.outcome == "succeeded"
    assert rig.journal.notices("download_cancelled") == ["big.bin"]


async def test_what_asks_for_a_permission_is_denied_at_once(rig: Rig, site: Site) -> None:
    await rig.window()
    ask = (
        "() => new Promise(done => navigator.geolocation.getCurrentPosition("
        "() => done('given'), error => done(error.code)))"
    )
    outcome = await rig.run(
        goto(site.url.replace("127.0.0.1", "localhost")),
        script(ask, var="got"),
        {"type": "assert", "var": "got", "equals": 1},
        egress={"allow": [f"localhost:{site.port}"]},
    )
    assert outcome.outcome == "succeeded"


async def test_a_denied_address_is_the_reason_and_a_notice(rig: Rig, site: Site) -> None:
    await rig.window()
    outcome = await rig.run(goto(site.url + "/?q=secret"))
    assert reason(outcome) is Reason.EGRESS_DENIED
    (detail,) = rig.journal.notices("egress_denied")
    assert site.allow in detail
    assert "secret" not in detail


async def test_an_egress_entry_that_means_nothing_fails_by_name(rig: Rig) -> None:
    await rig.window()
    outcome = await rig.run(goto(PLAIN), egress={"allow": ["host:port:x"]})
    assert reason(outcome) is Reason.VALUE_INVALID
    assert outcome.page_gone


async def test_a_tab_that_is_gone_fails_as_closed(rig: Rig) -> None:
    outcome = await rig.run(goto(PLAIN))
    assert reason(outcome) is Reason.PAGE_CLOSED
    assert outcome.page_gone


@pytest.mark.slow
async def test_a_browser_that_does_not_close_a_window_is_killed(rig: Rig) -> None:
    await rig.window()
    assert rig.info is not None
    os.kill(rig.info.pid, signal.SIGSTOP)
    async with asyncio.timeout(12):
        await rig.browser.close_tab("c")
    assert [type(e) for e in rig.events] == [BrowserLost]
    assert not processes.anyone_left(set(), {rig.info.pid})


async def test_the_probe_says_whether_a_page_comes_up(rig: Rig) -> None:
    await rig.browser.probe()
    await rig.browser.kill()
    with pytest.raises(BrowserUnavailable):
        await rig.browser.probe()
