"""Steps of a flow: what they do, and how they say that they can't."""

from typing import Any

import pytest
from aiohttp import web

from agent.console.verbs import VERBS
from farm.protocol import steps as protocol
from farm.protocol.failures import Reason
from farm.protocol.flows import needs_browser
from farm.protocol.messages import EffectBegun
from tests.agent.console.conftest import FlowRun, answering
from tests.agent.steps.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = (
    "<title>T</title><div class=a>Hello <b>you</b></div><p hidden>no</p><i style='display:none'>x"
)


@pytest.fixture
def page(site: Site) -> dict[str, Any]:
    site.pages["/"] = answering(PAGE.encode(), "text/html")
    return {"type": "goto", "url": f"{site.url}/"}


async def reason_of(flow: FlowRun, *steps: dict[str, Any], **plan: Any) -> Reason | None:
    failure = await flow(*steps, **plan)
    return None if failure is None else failure.reason


@pytest.mark.parametrize("verb", protocol.VERBS)
async def test_every_step_has_its_row_or_needs_a_browser(verb: str) -> None:
    model: Any = protocol.VERBS[verb]
    if model not in VERBS:
        assert [path for path, _ in needs_browser(model.model_construct())] == [()]


async def test_what_needs_a_browser_says_so_and_may_be_optional(
    flow: FlowRun, page: dict[str, Any]
) -> None:
    click = {"type": "click", "selector": "a"}
    assert await reason_of(flow, page, click) is Reason.NEEDS_BROWSER
    assert await reason_of(flow, page, {**click, "optional": True}) is None


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"type": "assert", "selector": ".a", "text": "Hello you"}, None),
        ({"type": "assert", "text": "hello"}, Reason.ASSERTION_FAILED),
        ({"type": "assert", "text": "Hello you"}, None),
        ({"type": "assert", "selector": "p"}, Reason.ASSERTION_FAILED),
        ({"type": "assert", "selector": "i"}, Reason.ASSERTION_FAILED),
        ({"type": "assert", "url": "**/"}, None),
        ({"type": "assert", "url": "**/x"}, Reason.ASSERTION_FAILED),
        ({"type": "assert", "selector": "text/Hello"}, Reason.NEEDS_BROWSER),
        ({"type": "assert", "selector": "b["}, Reason.SELECTOR_INVALID),
        ({"type": "assert", "var": "none"}, Reason.VALUE_INVALID),
        ({"type": "wait_for", "selector": "b"}, None),
        ({"type": "wait_for", "selector": "p"}, Reason.SELECTOR_NOT_FOUND),
        ({"type": "wait_for", "selector": "p", "state": "attached"}, None),
        ({"type": "wait_for", "selector": "p", "state": "hidden"}, None),
        ({"type": "wait_for", "selector": "b", "state": "detached"}, Reason.SELECTOR_NOT_FOUND),
        ({"type": "wait_for", "selector": "b", "count": 2}, Reason.SELECTOR_NOT_FOUND),
        ({"type": "wait_for", "selector": "//b", "count": 1, "operator": "=="}, None),
        ({"type": "wait_for_url", "url": "**/"}, None),
        ({"type": "wait_for_url", "url": "**/x"}, Reason.NEEDS_BROWSER),
        ({"type": "extract", "list": "u", "fields": {"a": "b"}}, Reason.SELECTOR_NOT_FOUND),
        ({"type": "extract", "list": "u", "min": 0, "fields": {"a": "b"}}, None),
        (
            {"type": "extract", "fields": {"a": {"selector": "u", "required": True}}},
            Reason.REQUIRED_MISSING,
        ),
        ({"type": "extract", "fields": {"a": "b["}}, Reason.SELECTOR_INVALID),
        ({"type": "extract", "fields": {"a": "xpath///b["}}, Reason.SELECTOR_INVALID),
        ({"type": "extract", "list": "b:visible", "fields": {"a": "b"}}, Reason.NEEDS_BROWSER),
        ({"type": "wait", "ms": 10}, None),
        ({"type": "wait", "ms": 1000, "timeout": 50}, Reason.STEP_TIMEOUT),
    ],
    ids=str,
)
async def test_looking_at_a_page_that_does_not_change(
    flow: FlowRun, page: dict[str, Any], step: dict[str, Any], reason: Reason | None
) -> None:
    assert await reason_of(flow, page, step) is reason


async def test_the_evidence_is_that_of_a_tab(flow: FlowRun, page: dict[str, Any]) -> None:
    assert await flow(page, {"type": "html", "name": "p.html"}) is None
    kinds = [type(event).__name__ for event in flow.evidence.events]
    assert kinds == 2 * ["StepStarted", "StepEnded"]
    content, media_type = flow.evidence.files["p.html"]
    assert media_type == "text/html"
    assert content.startswith(b"<html><head><title>T</title></head><body><div class=")


async def test_status_and_variables(flow: FlowRun, site: Site, page: dict[str, Any]) -> None:
    failure = await flow({**page, "url": f"{site.url}/nothing", "expect_status": 200})
    assert failure is not None
    assert (failure.reason, failure.status) == (Reason.HTTP_STATUS, 404)
    assert await flow(
        page,
        {"type": "set", "var": "t", "value": "${page.title}"},
        {"type": "assert", "var": "t", "equals": "T"},
        {"type": "goto", "url": "?q=${vars.t}"},
        {"type": "assert", "url": "**/?q=T"},
    ) is None  # fmt: skip


def listing(number: int, last: int) -> str:
    following = f"<a class=next href='/list/{number + 1}'>more</a>" if number < last else ""
    return f"<ul><li>{number}a<li>{number}b</ul>{following}"


async def test_links_lead_from_one_page_of_results_to_the_next(site: Site, flow: FlowRun) -> None:
    for number in range(1, 6):
        site.pages[f"/list/{number}"] = listing(number, 5)
    goto = {"type": "goto", "url": f"{site.url}/list/1"}
    extract = {"type": "extract", "list": "li", "fields": {"t": {}}}
    for pages, count in (({}, 10), ({"max_pages": 2}, 4), ({"max_items": 5}, 5)):
        step = {**extract, "paginate": {"next": ".next", **pages}}
        assert await flow(goto, step) is None
        assert len(flow.items) == count
    assert [item["t"] for item in flow.items] == ["1a", "1b", "2a", "2b", "3a"]


@pytest.mark.parametrize(
    ("link", "notices", "reason"),
    [
        ("<a class=next href='/'>", ["page_unchanged"], None),
        ("<a class='next disabled' href='/x'>", [], None),
        ("<a class=next href='/x' hidden>", [], None),
        ("<button class=next disabled>", [], None),
        ("<button class=next>", [], Reason.NEEDS_BROWSER),
        ("<a class=next href='#'>", [], Reason.NEEDS_BROWSER),
        ("<link class=next href='/'>", ["page_unchanged"], None),
    ],
)
async def test_what_leads_nowhere_ends_it_and_what_must_be_clicked_needs_a_browser(
    site: Site, flow: FlowRun, link: str, notices: list[str], reason: Reason | None
) -> None:
    site.pages["/"] = f"<li>a{link}"
    step = {"type": "extract", "list": "li", "fields": {"t": {}}, "paginate": {"next": ".next"}}
    assert await reason_of(flow, {"type": "goto", "url": f"{site.url}/"}, step) is reason
    assert flow.evidence.notices == notices
    assert flow.items == [{"t": "a"}]


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response(
        {
            "method": request.method,
            "type": request.headers.get("Content-Type"),
            "x": request.headers.get("X"),
            "body": await request.text(),
        },
        status=int(request.query.get("status", "200")),
    )


async def test_a_request_is_answered_into_a_variable(site: Site, flow: FlowRun) -> None:
    site.pages["/api"] = echo
    step = {"type": "http", "url": f"{site.url}/api", "var": "v", "headers": {"X": "y"}}
    assert await flow(step) is None
    assert flow.variables["v"]["status"] == 200
    assert flow.variables["v"]["body"] | {"type": None} == {
        "method": "GET", "type": None, "x": "y", "body": "",
    }  # fmt: skip
    assert flow.evidence.begun == []


async def test_an_unsafe_request_is_an_effect_that_is_durable_first(
    site: Site, flow: FlowRun
) -> None:
    site.pages["/api"] = echo
    step = {"type": "http", "url": f"{site.url}/api?secret=1", "method": "POST", "json": {"a": 1}}
    assert await flow({**step, "var": "v"}) is None
    (begun,) = flow.evidence.settled
    assert isinstance(begun, EffectBegun)
    assert (begun.effect, begun.observed, begun.method) == ("once", False, "POST")
    assert begun.url == f"{site.url}/api"
    assert flow.evidence.done == [begun.effect_id]
    body = flow.variables["v"]["body"]
    assert (body["body"], body["type"]) == ('{"a": 1}', "application/json")


async def test_an_answer_that_is_not_wanted_fails_after_the_effect(
    site: Site, flow: FlowRun
) -> None:
    site.pages["/api"] = echo
    url = f"{site.url}/api?status=500"
    assert await reason_of(flow, {"type": "http", "url": url, "method": "PUT"}) is (
        Reason.HTTP_STATUS
    )
    assert len(flow.evidence.done) == 1
    assert await reason_of(flow, {"type": "http", "url": url, "expect_status": [500]}) is None


async def test_what_was_never_sent_was_no_effect_and_what_broke_off_may_have_been(
    site: Site, flow: FlowRun
) -> None:
    async def breaks_off(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    site.pages["/api"] = breaks_off
    post = {"type": "http", "method": "POST"}
    assert await reason_of(flow, {**post, "url": "http://10.0.0.1/"}) is Reason.EGRESS_DENIED
    assert len(flow.evidence.done) == len(flow.evidence.begun) == 1
    assert await reason_of(flow, {**post, "url": "http://127.0.0.1:1/"}) is (
        Reason.NAVIGATION_FAILED
    )
    assert len(flow.evidence.done) == len(flow.evidence.begun) == 1
    assert await reason_of(flow, {**post, "url": f"{site.url}/api"}) is Reason.NAVIGATION_FAILED
    assert (len(flow.evidence.begun), flow.evidence.done) == (1, [])


async def test_secrets_do_not_follow_a_redirect_to_another_origin(
    site: Site, flow: FlowRun
) -> None:
    async def mirror(request: web.Request) -> web.StreamResponse:
        return web.json_response({"seen": request.headers.get("Authorization")})

    async def away(_: web.Request) -> web.StreamResponse:
        other = site.url.replace("127.0.0.1", "localhost")
        return web.Response(status=307, headers={"Location": f"{other}/mirror"})

    site.pages |= {"/away": away, "/mirror": mirror}
    step = {"type": "http", "url": f"{site.url}/away", "headers": {"Authorization": "s"}}
    allow = {"allow": ["127.0.0.1", "localhost"]}
    assert await flow({**step, "var": "v"}, egress=allow) is None
    assert flow.variables["v"]["body"] == {"seen": None}
    assert await flow({**step, "url": f"{site.url}/mirror", "var": "v"}) is None
    assert flow.variables["v"]["body"] == {"seen": "s"}


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"X": "a\nb"}, {"Host": "x"}])
async def test_what_is_no_header_is_refused(
    site: Site, flow: FlowRun, headers: dict[str, str]
) -> None:
    step = {"type": "http", "url": site.url, "headers": headers}
    assert await reason_of(flow, step) is Reason.VALUE_INVALID
    assert site.requests == []
