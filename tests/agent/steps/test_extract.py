"""Records from pages: fields, lists, hostile pages."""

from typing import Any

import pytest
from aiohttp import web

from farm.protocol.failures import Reason
from farm.protocol.messages import Items

from .conftest import Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SHOP = """<base href="https://shop.example/list/">
<article class=product data-sku=a1><h3><a href="../p/1">First
   <b>thing</b></a></h3><p class=price>EUR 1,109.50</p>
  <ul class=tags><li>red</li><li> big  one </li></ul><span class=stock>yes</span>
  <div class=seller><i class=n>Ann</i><i class=r>4.5</i></div>
  <div class=rev><q>fine</q><i>5</i></div><div class=rev><q>poor</q><i>1</i></div>
  <img src="/a.png"><img src="b.png"></article>
<article class=product data-sku=a2><h3><a href="http://other.example/">Second</a></h3>
  <p class=price>on request</p></article>"""


async def test_every_kind_of_field_gives_its_value(run: Runner) -> None:
    items = await run.extract(
        SHOP,
        {
            "sku": "@data-sku",
            "title": {"selector": "h3 a", "required": True},
            "url": "h3 a@href",
            "price": {"selector": ".price", "type": "number"},
            "currency": {"selector": ".price", "regex": "[A-Z]{3}", "default": "EUR"},
            "tags": {"selector": ".tags li", "all": True},
            "first_tag": {"selector": ".tags li", "all": True, "limit": 1},
            "in_stock": {"selector": ".stock", "exists": True},
            "photos": {"selector": "img", "count": True},
            "pictures": {"selector": "img", "attribute": "src", "all": True},
            "seller": {
                "selector": ".seller",
                "fields": {"name": ".n", "rating": {"selector": ".r", "type": "number"}},
            },
            "reviews": {
                "list": ".rev",
                "fields": {"text": "q", "stars": {"selector": "i", "type": "number"}},
            },
            "one_review": {"list": ".rev", "fields": {"text": "q"}, "limit": 1},
            "inner": {"selector": ".tags", "html": "inner"},
            "outer": {"selector": ".stock", "html": "outer"},
            "where": {"value": "${page.url}"},
            "kind": {"selector": "h3", "prop": "tagName"},
        },
        list="article.product",
    )
    assert items == [
        {
            "sku": "a1",
            "title": "First thing",
            "url": "https://shop.example/p/1",
            "price": 1109.5,
            "currency": "EUR",
            "tags": ["red", "big one"],
            "first_tag": ["red"],
            "in_stock": True,
            "photos": 2,
            "pictures": ["https://shop.example/a.png", "https://shop.example/list/b.png"],
            "seller": {"name": "Ann", "rating": 4.5},
            "reviews": [{"text": "fine", "stars": 5}, {"text": "poor", "stars": 1}],
            "one_review": [{"text": "fine"}],
            "inner": "<li>red</li><li> big  one </li>",
            "outer": '<span class="stock">yes</span>',
            "where": "about:blank",
            "kind": "H3",
        },
        {
            "sku": "a2",
            "title": "Second",
            "url": "http://other.example/",
            "price": None,
            "currency": "EUR",
            "tags": [],
            "first_tag": [],
            "in_stock": False,
            "photos": 0,
            "pictures": [],
            "seller": None,
            "reviews": [],
            "one_review": [],
            "inner": None,
            "outer": None,
            "where": "about:blank",
            "kind": "H3",
        },
    ]


async def test_without_a_list_the_page_is_one_record(run: Runner) -> None:
    items = await run.extract(
        "<html lang=nl><title>T</title><h1>Head</h1><p>a</p><p>b</p>",
        {"title": "title", "head": "h1", "lang": "@lang", "text": {"selector": "body"}},
    )
    assert items == [{"title": "T", "head": "Head", "lang": "nl", "text": "Head a b"}]


async def test_xpath_prefixes_combinators_and_shadow_roots_work_inside_a_record(
    run: Runner,
) -> None:
    items = await run.extract(
        """<div class=r><b>one</b><p><b>two</b></p><my-card id=c></my-card>
        <script type="application/ld+json">{"a": [1, 2.0, null]}</script></div><b>outside</b>
        <script>c.attachShadow({mode: 'open'}).innerHTML = '<i>inside</i>'</script>""",
        {
            "own": "> b",
            "css": "css/p b",
            "xpath": "xpath///b[2] | .//p/b",
            "all": {"selector": "//b", "all": True},
            "attribute": "xpath/.//my-card/@id",
            "counted": "xpath/count(.//b)",
            "text": "xpath/string(.//p)",
            "shadow": {"selector": "my-card", "fields": {"inside": "i"}},
            "ld": {"selector": "script", "type": "json"},
            "no_json": {"selector": "b", "type": "json"},
        },
        list=".r",
    )
    assert items == [
        {
            "own": "one",
            "css": "two",
            "xpath": "two",
            "all": ["one", "two"],
            "attribute": "c",
            "counted": "2",
            "text": "two",
            "shadow": {"inside": "inside"},
            "ld": {"a": [1, 2, None]},
            "no_json": None,
        }
    ]


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        ({"list": "role=listitem"}, ["a", "b", "c"]),
        ({"list": "xpath///li"}, ["a", "b", "c"]),
        ({"list": "text/b"}, ["b"]),
        ({"list": "li", "within": "#two"}, ["c"]),
        ({"within": "#two"}, ["c"]),
        ({"list": "li", "limit": 2}, ["a", "b"]),
        ({"list": ".none", "min": 0}, []),
    ],
)
async def test_records_are_where_list_and_within_say(
    run: Runner, chosen: dict[str, Any], wanted: list[str]
) -> None:
    markup = "<ul id=one><li>a</li><li>b</li></ul><ul id=two><li>c</li></ul>"
    assert await run.extract(markup, {"t": {}}, **chosen) == [{"t": text} for text in wanted]


async def test_min_waits_for_records_that_come_late(run: Runner) -> None:
    markup = """<ul id=l><li>1</li></ul><script>
    setTimeout(() => { l.innerHTML += '<li>2</li>'; }, 150);
    setTimeout(() => { l.innerHTML += '<li>3</li>'; }, 300);</script>"""
    items = await run.extract(markup, {"n": {"type": "number"}}, list="li", min=3)
    assert items == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_too_few_records_in_time_is_not_found(run: Runner) -> None:
    failure = await run.on(
        "<p>x</p>",
        {"type": "extract", "fields": {"t": "b"}, "list": "p", "min": 2, "timeout": 1000},
    )
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_NOT_FOUND
    assert "'p' matched 1, wanted at least 2" in failure.detail


async def test_a_required_field_that_is_missing_is_named_with_its_record(run: Runner) -> None:
    failure = await run.on(
        "<div><i><b>1</b></i></div><div><i></i></div>",
        {
            "type": "extract",
            "list": "div",
            "fields": {
                "a": {"selector": "i", "fields": {"b": {"selector": "b", "required": True}}}
            },
        },
    )
    assert failure is not None
    assert failure.reason is Reason.REQUIRED_MISSING
    assert "a.b is missing in record 1" in failure.detail
    assert run.evidence.items == [{"a": {"b": "1"}}]


async def test_repeated_records_are_dropped_within_the_attempt(run: Runner) -> None:
    step = {"type": "extract", "list": "p", "unique_by": "t", "fields": {"t": {}}}
    failure = await run.on("<p>a</p><p>b</p><p>a</p>", step, {**step, "limit": 1})
    assert failure is None
    assert run.evidence.items == [{"t": "a"}, {"t": "b"}]


async def test_items_are_numbered_through_the_data_set(run: Runner) -> None:
    step = {"type": "extract", "name": "d", "list": "p", "fields": {"t": {}}}
    await run.on("<p>a</p><p>b</p>", step, step)
    noted = [e for e in run.evidence.events if isinstance(e, Items)]
    assert [(e.dataset, e.first, len(e.items)) for e in noted] == [("d", 0, 2), ("d", 2, 2)]


@pytest.mark.parametrize("selector", ["a[", "xpath///[", "a:has-text('x')"])
async def test_a_field_the_browser_cannot_parse_is_invalid_by_name(
    run: Runner, selector: str
) -> None:
    failure = await run.on("<p>", {"type": "extract", "fields": {"bad": selector}})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_INVALID
    assert "field bad" in failure.detail


async def test_a_list_the_engine_cannot_parse_is_invalid(run: Runner) -> None:
    failure = await run.on("<p>", {"type": "extract", "list": "p[", "fields": {"a": "b"}})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_INVALID


async def test_values_take_variables_with_their_type_and_the_title(run: Runner) -> None:
    failure = await run.on(
        "<title>Tea</title>",
        {"type": "set", "var": "n", "value": 7},
        {
            "type": "extract",
            "fields": {
                "n": {"value": "${vars.n}"},
                "said": {"value": "${vars.n} of ${page.title}"},
                "p": {"value": "${params.p}", "regex": "[0-9]+", "type": "number"},
            },
        },
        params={"p": "no 12"},
    )
    assert failure is None
    assert run.evidence.items == [{"n": 7, "said": "7 of Tea", "p": 12}]


HOSTILE = """<form class=r><input name=innerHTML><input name=querySelectorAll value=v>
<input name=getAttribute><input name=nodeType><input name=textContent><b>x</b></form><script>
for (const name of [METHODS]) {
  Array.prototype[name] = () => { throw new Error('mine'); };
}
String.prototype.trim = String.prototype.replace = String.prototype.split = () => 'mine';
Array.prototype.toJSON = Object.prototype.toJSON = String.prototype.toJSON = () => 'mine';
Element.prototype.extra = 'mine'; Object.prototype.kind = 'mine';
NodeList.prototype.forEach = NodeList.prototype.item = () => { throw new Error('mine'); };
</script>"""


@pytest.mark.parametrize(
    ("methods", "where"),
    [
        # Playwright itself needs the further methods to look up a list.
        ("'map', 'forEach', 'indexOf'", {"list": "form.r"}),
        ("'map', 'forEach', 'indexOf', 'filter', 'join', 'concat'", {}),
    ],
)
async def test_a_page_that_replaced_the_built_ins_is_read_all_the_same(
    run: Runner, methods: str, where: dict[str, Any]
) -> None:
    items = await run.extract(
        HOSTILE.replace("METHODS", methods),
        {
            "b": "b",
            "v": "input[name=querySelectorAll]@value",
            "n": {"selector": "b", "all": True},
            "f": {"selector": "form", "html": "inner"} if not where else {"html": "inner"},
        },
        **where,
    )
    assert "<b>x</b>" in items[0].pop("f")
    assert items == [{"b": "x", "v": "v", "n": ["x"]}]


async def test_a_page_that_lies_in_the_answer_fails_the_step_and_nothing_else(run: Runner) -> None:
    failure = await run.on(
        '<script>JSON.stringify = () => \'{"n": 1, "records": [[]], "cut": 0}\'</script>',
        {"type": "extract", "fields": {"a": "b"}},
    )
    assert failure is not None
    assert failure.reason is Reason.SCRIPT_ERROR


async def test_nothing_of_ours_is_left_in_the_page(run: Runner) -> None:
    names = "() => Object.getOwnPropertyNames(window).sort().join()"
    await run.page.set_content("<p>x</p>")
    before = await run.page.evaluate(names)
    assert await run({"type": "extract", "fields": {"a": "p"}}) is None
    assert await run.page.evaluate(names) == before


async def test_huge_texts_are_cut_and_many_records_sent_in_parts(run: Runner) -> None:
    failure = await run.on(
        "<pre></pre><script>document.querySelector('pre').textContent = 'x'.repeat(3e6)</script>"
        "<i></i><i></i><i></i><script>for (const i of document.querySelectorAll('i'))"
        " i.textContent = 'y'.repeat(4e5);</script>",
        {"type": "extract", "name": "big", "fields": {"t": "pre"}},
        {"type": "extract", "name": "many", "list": "i", "fields": {"t": {}}},
    )
    assert failure is None
    assert [len(item["t"]) for item in run.evidence.items] == [1_000_000, 400_000, 400_000, 400_000]
    assert run.evidence.notices == ["text_cut"]
    parts = [e for e in run.evidence.events if isinstance(e, Items) and e.dataset == "many"]
    assert [(part.first, len(part.items)) for part in parts] == [(0, 2), (2, 1)]


async def test_half_a_surrogate_pair_cannot_break_the_wire(run: Runner) -> None:
    items = await run.extract(
        "<p id=p></p><script>p.textContent = 'a\\ud800b'</script>", {"t": "p"}
    )
    assert items == [{"t": "a\ufffdb"}]
    [event] = [e for e in run.evidence.events if isinstance(e, Items)]
    assert event.model_dump_json()


async def test_a_strict_content_policy_does_not_stop_the_extraction(
    run: Runner, site: Site
) -> None:
    async def page(_: web.Request) -> web.Response:
        policy = "default-src 'none'; require-trusted-types-for 'script'; sandbox allow-scripts"
        return web.Response(
            text="<p>x</p>",
            content_type="text/html",
            headers={"Content-Security-Policy": policy},
        )

    site.pages["/"] = page
    failure = await run(
        {"type": "goto", "url": site.url}, {"type": "extract", "fields": {"t": "p"}}
    )
    assert failure is None
    assert run.evidence.items == [{"t": "x"}]
