"""What is journalled before and after a step that changes the outside world."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from farm.protocol.failures import Reason
from farm.protocol.messages import EffectBegun, EffectDone, StepEnded, StepStarted

from .conftest import MemoryEvidence, Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

CLICK = {"type": "click", "selector": "button"}
PAGE = "<button onclick='document.title += \"x\"'>x</button><input id=i><input id=c type=checkbox>"


def kinds(evidence: MemoryEvidence) -> list[str]:
    return [event.kind for event in evidence.events]


async def test_an_effect_is_settled_before_the_click_and_done_after_it(run: Runner) -> None:
    titles: list[str] = []

    async def look() -> None:
        titles.append(await run.page.title())

    run.evidence.before_settled = look
    assert await run.on(PAGE, CLICK) is None
    assert titles == [""]
    assert await run.page.title() == "x"
    assert kinds(run.evidence) == ["step_started", "effect_begun", "effect_done", "step_ended"]


@pytest.mark.parametrize(
    "step",
    [
        CLICK,
        {"type": "press", "key": "a", "selector": "#i"},
        {"type": "check", "selector": "#c"},
        {"type": "fill", "selector": "#i", "value": "a", "submit": True},
        {"type": "fill", "selector": "#i", "value": "a", "effect": "once"},
        {"type": "type", "selector": "#i", "text": "a\n"},
        {"type": "eval", "script": "document.title = 'x'"},
        {"type": "goto", "url": "about:blank", "effect": "once"},
        {"type": "hover", "selector": "button", "effect": "once"},
    ],
)
async def test_when_the_attempt_has_ended_for_the_farm_nothing_is_done(
    run: Runner, step: dict[str, Any]
) -> None:
    run.evidence.stale = True
    failure = await run.on(PAGE, {**step, "optional": True}, CLICK)
    assert failure is not None
    assert failure.reason is Reason.STALE_ASSIGNMENT
    assert failure.step_index == 0
    assert await run.page.title() == ""
    assert await run.page.evaluate("c.checked") is False
    assert run.evidence.begun == []
    assert run.evidence.files == {}


@pytest.mark.parametrize(
    ("own", "job", "wanted"),
    [
        (None, "once", ["once"]),
        (None, "idempotent", ["idempotent"]),
        ("idempotent", "once", ["idempotent"]),
        ("once", "idempotent", ["once"]),
        ("none", "once", []),
    ],
)
async def test_a_step_counts_by_its_own_word_else_by_the_jobs(
    run: Runner, own: str | None, job: str, wanted: list[str]
) -> None:
    assert await run.on(PAGE, {**CLICK, "effect": own}, effects=job) is None
    assert [event.effect for event in run.evidence.begun] == wanted


async def test_reading_steps_leave_no_effect(run: Runner) -> None:
    failure = await run.on(
        PAGE,
        {"type": "extract", "fields": {"b": "button"}},
        {"type": "hover", "selector": "button"},
        {"type": "fill", "selector": "#i", "value": "x"},
        {"type": "type", "selector": "#i", "text": "x"},
        {"type": "wait_for", "selector": "button"},
    )
    assert failure is None
    assert run.evidence.begun == []


async def test_an_act_that_hangs_is_left_begun_and_not_done(run: Runner) -> None:
    failure = await run.on("<p>", {"type": "eval", "script": "for (;;) {}", "timeout": 500})
    assert failure is not None
    assert failure.reason is Reason.STEP_TIMEOUT
    assert [event.effect_id for event in run.evidence.begun] == ["s0.0"]
    assert run.evidence.done == []


async def test_waiting_for_the_farm_does_not_count_against_the_step(run: Runner) -> None:
    async def slow() -> None:
        await asyncio.wait_for(asyncio.shield(asyncio.Event().wait()), 2.2)

    async def late() -> None:
        try:
            await slow()
        except TimeoutError:
            return

    run.evidence.before_settled = late
    assert await run.on(PAGE, CLICK, timeouts={"step": 2000}) is None
    assert await run.page.title() == "x"


async def test_unsafe_requests_are_journalled_though_no_step_declared_them(
    run: Runner, site: Site
) -> None:
    site.pages["/"] = "<script>fetch('/api?secret=1#x', {method: 'POST'}); fetch('/get')</script>"
    site.pages["/api"] = "ok"
    assert await run({"type": "goto", "url": site.url}) is None
    [begun] = run.evidence.begun
    assert begun == EffectBegun(
        effect_id="r1",
        index=0,
        effect="once",
        observed=True,
        method="POST",
        url=f"{site.url}/api",
    )
    assert run.evidence.done == ["r1"]


async def test_a_submitted_form_is_both_declared_and_observed(run: Runner, site: Site) -> None:
    site.pages |= {"/": "<form method=post action=/p><button>x</button></form>", "/p": "ok"}
    assert await run({"type": "goto", "url": site.url}, {**CLICK, "effect": "idempotent"}) is None
    assert [(e.observed, e.effect, e.index) for e in run.evidence.begun] == [
        (False, "idempotent", 1),
        (True, "idempotent", 1),
    ]
    assert sorted(run.evidence.done) == ["r1", "s1.0"]
    assert site.posts() == ["POST /p"]


async def test_a_request_nobody_answers_is_left_begun(
    run: Runner, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("agent.steps.observed.DRAIN_S", 0.3)
    site.pages |= {"/": "<script>fetch('/p', {method: 'PUT'})</script>", "/p": hang}
    assert await run({"type": "goto", "url": site.url}) is None
    assert [event.method for event in run.evidence.begun] == ["PUT"]
    assert run.evidence.done == []


async def test_a_popups_requests_count_and_another_tabs_do_not(run: Runner, site: Site) -> None:
    asked = asyncio.Event()

    async def from_popup(_: web.Request) -> web.Response:
        asked.set()
        return web.Response()

    async def told(_: web.Request) -> web.Response:
        await asked.wait()
        return web.Response()

    site.pages |= {
        "/": """<button onclick='open("/popup", "_blank", "noopener");
            fetch("/told").then(() => document.body.id = "told")'>x</button>""",
        "/popup": "<script>fetch('/from-popup', {method: 'POST'})</script>",
        "/from-popup": from_popup,
        "/told": told,
        "/from-other": "ok",
    }
    other = await run.page.context.new_page()
    await other.goto(f"{site.url}/from-other")
    await run.page.goto(site.url)
    await run.page.evaluate("1")

    async def from_other() -> None:
        await other.evaluate("fetch('/from-other', {method: 'POST'}).then(r => r.text())")

    run.evidence.before_settled = from_other
    failure = await run(CLICK, {"type": "wait_for", "selector": "#told"})
    assert failure is None
    urls = [event.url for event in run.evidence.begun if event.observed]
    assert urls == [f"{site.url}/from-popup"]


async def test_the_journal_of_observed_requests_is_bounded(
    run: Runner, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.steps.observed.MAX_OBSERVED", 3)
    site.pages |= {
        "/": "<script>for (let i = 0; i < 6; i++) fetch('/p', {method: 'POST'})</script>",
        "/p": "ok",
    }
    assert await run({"type": "goto", "url": site.url}) is None
    assert len(run.evidence.begun) == 3
    assert run.evidence.notices == ["observed_too_many"]


async def test_nothing_is_listened_to_after_the_run(run: Runner, site: Site) -> None:
    site.pages |= {"/": "x", "/p": "ok"}
    assert await run({"type": "goto", "url": site.url}) is None
    before = len(run.evidence.events)
    await run.page.evaluate("fetch('/p', {method: 'POST'}).then(r => r.text())")
    assert len(run.evidence.events) == before


async def test_steps_are_told_in_order_with_their_labels(run: Runner) -> None:
    failure = await run.on(
        PAGE,
        {"type": "wait", "ms": 0},
        {"type": "click", "selector": "button", "name": "Buy"},
        {"type": "extract", "id": "take", "name": "things", "fields": {"b": "button"}},
        {"type": "html", "name": "x.html"},
    )
    assert failure is None
    started = [e for e in run.evidence.events if isinstance(e, StepStarted)]
    ended = [e for e in run.evidence.events if isinstance(e, StepEnded)]
    assert [(e.index, e.verb, e.label) for e in started] == [
        (0, "wait", "wait"),
        (1, "click", "Buy"),
        (2, "extract", "take"),
        (3, "html", "html"),
    ]
    assert [e.index for e in ended] == [0, 1, 2, 3]
    assert all(e.ms >= 0 for e in ended)
    assert any(isinstance(e, EffectDone) for e in run.evidence.events)
