"""From one page of results to the next, and when to stop."""

from typing import Any

import pytest
from aiohttp import web

from farm.protocol.failures import Reason
from farm.protocol.messages import Items

from .conftest import Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


def step(next_: str = "a.next", **more: Any) -> dict[str, Any]:
    paginate = {"next": next_, **more.pop("paginate", {})}
    return {"type": "extract", "list": "p", "fields": {"t": {}}, "paginate": paginate, **more}


def pages(site: Site, *bodies: str) -> str:
    for number, body in enumerate(bodies):
        site.pages[f"/{number}"] = body
    return f"{site.url}/0"


def texts(run: Runner) -> list[str]:
    return [item["t"] for item in run.evidence.items]


async def test_links_are_followed_until_there_is_none(run: Runner, site: Site) -> None:
    start = pages(
        site,
        "<p>a</p><p>b</p><a class=next href=/1>next</a>",
        "<p>c</p><a class=next href=2>next</a>",
        "<p>d</p>",
    )
    assert await run({"type": "goto", "url": start}, step()) is None
    assert texts(run) == ["a", "b", "c", "d"]
    noted = [e for e in run.evidence.events if isinstance(e, Items)]
    assert [(e.first, len(e.items)) for e in noted] == [(0, 2), (2, 1), (3, 1)]
    assert run.evidence.begun == []


@pytest.mark.parametrize(
    "last",
    [
        "<a class='next disabled' href=/2>next</a>",
        "<li class=disabled><a class=next href=/2>next</a></li>",
        "<a class=next aria-disabled=true href=/2>next</a>",
        "<a class=next hidden href=/2>next</a>",
        "<button class=next disabled>next</button>",
    ],
)
async def test_a_next_that_is_disabled_or_hidden_is_the_end(
    run: Runner, site: Site, last: str
) -> None:
    start = pages(site, "<p>a</p><a class=next href=/1>n</a>", f"<p>b</p>{last}", "<p>c</p>")
    assert await run({"type": "goto", "url": start}, step(".next")) is None
    assert texts(run) == ["a", "b"]


@pytest.mark.parametrize(
    ("paginate", "wanted"), [({"max_pages": 2}, ["a", "b", "c"]), ({"max_items": 2}, ["a", "b"])]
)
async def test_bounds_end_the_walk(
    run: Runner, site: Site, paginate: dict[str, int], wanted: list[str]
) -> None:
    start = pages(
        site,
        "<p>a</p><a class=next href=/1>n</a>",
        "<p>b</p><p>c</p><a class=next href=/2>n</a>",
        "<p>d</p>",
    )
    assert await run({"type": "goto", "url": start}, step(paginate=paginate)) is None
    assert texts(run) == wanted


async def test_a_head_link_can_be_next(run: Runner, site: Site) -> None:
    start = pages(site, "<link rel=next href=/1><p>a</p>", "<p>b</p>")
    assert await run({"type": "goto", "url": start}, step("link[rel=next]")) is None
    assert texts(run) == ["a", "b"]


async def test_a_link_to_itself_is_no_endless_loop(run: Runner, site: Site) -> None:
    start = pages(site, "<p>a</p><a class=next href=/0>n</a>")
    assert await run({"type": "goto", "url": start}, step()) is None
    assert run.evidence.notices == ["page_unchanged"]
    assert texts(run) == ["a"]


async def test_pages_in_circles_end_with_a_notice(run: Runner, site: Site) -> None:
    start = pages(
        site, "<p>a</p><a class=next href=/1>n</a>", "<p>b</p><a class=next href=/0>n</a>"
    )
    assert await run({"type": "goto", "url": start}, step()) is None
    assert texts(run) == ["a", "b"]
    assert run.evidence.notices == ["pages_in_circles"]


async def test_pages_with_nothing_new_end_with_a_notice(run: Runner, site: Site) -> None:
    async def endless(request: web.Request) -> web.Response:
        number = int(request.query.get("n", "0"))
        return web.Response(
            text=f"<p>same</p><a class=next href=/list?n={number + 1}>n</a>",
            content_type="text/html",
        )

    site.pages["/list"] = endless
    failure = await run({"type": "goto", "url": f"{site.url}/list"}, step(unique_by="t"))
    assert failure is None
    assert texts(run) == ["same"]
    assert run.evidence.notices == ["nothing_new"]


SCRIPTED = """<div id=list><p>1</p></div><button class=next>more</button><script>
let n = 1;
document.querySelector('.next').onclick = () => setTimeout(() => {
  n++;
  if (n <= 3) document.querySelector('#list').innerHTML = `<p>${n}</p>`;
  if (n === LAST) document.querySelector('.next').disabled = true;
}, 100);
</script>"""


async def test_a_button_is_clicked_as_an_effect_and_waited_for(run: Runner) -> None:
    failure = await run.on(SCRIPTED.replace("LAST", "3"), step(".next"))
    assert failure is None
    assert texts(run) == ["1", "2", "3"]
    assert [(e.effect_id, e.effect, e.observed) for e in run.evidence.settled] == [  # type: ignore[union-attr]
        ("s0.0", "once", False),
        ("s0.1", "once", False),
    ]
    assert run.evidence.done == ["s0.0", "s0.1"]


@pytest.mark.parametrize("href", ["#", "#more"])
async def test_a_link_within_the_page_is_clicked_and_not_opened(
    run: Runner, site: Site, href: str
) -> None:
    button, link = "<button class=next>more</button>", f"<a class=next href='{href}'>more</a>"
    site.pages["/list"] = SCRIPTED.replace(button, link).replace("LAST", "99")
    start = {"type": "goto", "url": f"{site.url}/list"}
    assert await run(start, step(paginate={"max_pages": 3})) is None
    assert texts(run) == ["1", "2", "3"]
    assert site.requests.count("GET /list") == 1


async def test_a_click_that_changes_nothing_ends_with_a_notice(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.steps.extract.CHANGE_S", 0.5)
    failure = await run.on(SCRIPTED.replace("LAST", "99"), step(".next"))
    assert failure is None
    assert texts(run) == ["1", "2", "3"]
    assert run.evidence.notices == ["page_unchanged"]


async def test_a_button_may_load_another_page(run: Runner, site: Site) -> None:
    start = pages(
        site,
        "<p>a</p><form action=/1><button class=next>n</button></form>",
        "<p>b</p><p>c</p>",
    )
    assert await run({"type": "goto", "url": start}, step(".next")) is None
    assert texts(run) == ["a", "b", "c"]


async def test_what_was_there_before_a_failure_is_kept(run: Runner, site: Site) -> None:
    start = pages(site, "<p>a</p><a class=next href=/1>n</a>", "nothing here")
    failure = await run({"type": "goto", "url": start}, step(timeout=700))
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_NOT_FOUND
    assert texts(run) == ["a"]


async def test_the_step_clock_is_for_each_page(run: Runner, site: Site) -> None:
    start = pages(
        site, *(f"<p>{n}</p><a class=next href=/{n + 1}>n</a>" for n in range(5)), "<p>5</p>"
    )
    failure = await run(
        {"type": "goto", "url": start},
        step(paginate={"delay": 150}),
        timeouts={"step": 600, "navigation": 600},
    )
    assert failure is None
    assert texts(run) == ["0", "1", "2", "3", "4", "5"]
