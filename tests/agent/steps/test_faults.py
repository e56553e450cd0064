"""Pages that hang, crash, close or are cancelled, and what is left of them to look at."""

import asyncio

import pytest
from aiohttp import web

from farm.protocol.failures import Reason

from .conftest import Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

READING = {"type": "eval", "effect": "none"}


async def test_a_failed_step_leaves_a_picture_and_the_markup(run: Runner) -> None:
    failure = await run.on(
        "<p>hello</p>",
        {"type": "wait", "ms": 0},
        {"type": "click", "selector": "#no", "id": "buy", "timeout": 1000},
    )
    assert failure is not None
    assert (failure.step_index, failure.step) == (1, "buy")
    assert run.evidence.files["failure-1.png"][0].startswith(b"\x89PNG")
    assert b"<p>hello</p>" in run.evidence.files["failure-1.html"][0]
    assert run.evidence.files["failure-1.html"][1] == "text/html"


async def test_an_optional_step_is_skipped_with_its_failure(run: Runner) -> None:
    failure = await run.on(
        "<p>hello</p>",
        {"type": "click", "selector": "#no", "optional": True, "timeout": 1000},
        {"type": "extract", "fields": {"t": "p"}},
    )
    assert failure is None
    assert [skipped.reason for skipped in run.evidence.skipped] == [Reason.SELECTOR_NOT_FOUND]
    assert run.evidence.items == [{"t": "hello"}]
    assert run.evidence.files == {}


async def test_a_hung_script_is_ended_by_our_clock(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.steps.capture.TAKE_S", 0.3)
    failure = await run.on("<p>", {**READING, "script": "new Promise(() => {})", "timeout": 300})
    assert failure is not None
    assert failure.reason is Reason.STEP_TIMEOUT
    assert failure.detail == "the step did not end within 0.3 s"
    assert set(run.evidence.files) == {"failure-0.png", "failure-0.html"}


async def test_a_page_that_spins_fails_each_step_in_time(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.steps.capture.TAKE_S", 0.3)
    await run.page.set_content("<p>x</p>")
    await run.page.evaluate("setTimeout(() => { for (;;) {} }, 0)")
    for step in (
        {"type": "extract", "fields": {"t": "p"}},
        {"type": "extract", "list": "p", "fields": {"t": {}}},
        {"type": "click", "selector": "p"},
        {"type": "scroll", "to": "top"},
        {"type": "html"},
    ):
        failure = await run({**step, "timeout": 300})
        assert failure is not None
        assert failure.reason in (Reason.STEP_TIMEOUT, Reason.SELECTOR_NOT_FOUND), step
    assert run.evidence.files == {}
    assert set(run.evidence.notices) == {"capture_failed"}


@pytest.mark.parametrize(
    "step",
    [
        {**READING, "script": "new Promise(() => {})"},
        {"type": "wait", "ms": 5_000},
        {"type": "wait_for", "selector": "#never"},
        {"type": "extract", "list": "#never", "fields": {"a": "b"}},
        {"type": "assert", "text": "never"},
        {"type": "click", "selector": "#never", "optional": True},
    ],
)
@pytest.mark.parametrize("how", ["crash", "close"])
async def test_a_page_that_goes_under_a_step_is_told_from_one_that_is_slow(
    run: Runner, step: dict[str, object], how: str
) -> None:
    async def end() -> None:
        await run.page.wait_for_timeout(150)
        if how == "close":
            await run.page.close()
            return
        session = await run.page.context.new_cdp_session(run.page)
        try:
            await asyncio.wait_for(session.send("Page.crash"), 0.5)
        except Exception:  # noqa: BLE001 - it never answers, one way or another
            return

    async with asyncio.TaskGroup() as group:
        group.create_task(end())
        failure = await run(step, timeouts={"step": 5_000})
    assert failure is not None
    assert failure.reason is (Reason.PAGE_CRASHED if how == "crash" else Reason.PAGE_CLOSED)
    assert run.evidence.notices == ["capture_failed"]
    later = await run({"type": "goto", "url": "about:blank"})
    assert later is not None
    assert later.reason is failure.reason


async def test_a_cancelled_run_stops_at_once_and_captures_nothing(run: Runner) -> None:
    started = asyncio.Event()

    async def begun() -> None:
        started.set()

    run.evidence.before_settled = begun
    await run.page.set_content("<p>x</p>")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run({"type": "eval", "script": "new Promise(() => {})"}))
        await asyncio.wait_for(started.wait(), 2)
        task.cancel()
    assert task.cancelled()
    assert run.evidence.files == {}
    assert run.evidence.notices == []


async def test_a_page_that_navigates_under_extract_is_read_where_it_arrives(
    run: Runner, site: Site
) -> None:
    async def slowly(_: web.Request) -> web.Response:
        return web.Response(text="<p>there</p>", content_type="text/html")

    site.pages |= {"/": "<script>location = '/b'</script>", "/b": slowly}
    failure = await run(
        {"type": "goto", "url": site.url, "wait_until": "commit"},
        {"type": "extract", "list": "p", "fields": {"t": {}}},
    )
    assert failure is None
    assert run.evidence.items == [{"t": "there"}]


async def test_texts_of_failures_carry_no_control_characters_and_an_end(run: Runner) -> None:
    failure = await run.on(
        "<p>", {**READING, "script": "throw new Error('\\u001b[31mred\\u0007' + 'x'.repeat(9999))"}
    )
    assert failure is not None
    assert len(failure.detail) == 2_000
    assert failure.detail.startswith("Error: redx")
