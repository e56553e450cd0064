"""What each verb does on a page."""

import json
from typing import Any

import pytest
from aiohttp import web

from farm.protocol.failures import Reason

from .conftest import Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def test_click_counts_buttons_and_modifiers(run: Runner) -> None:
    failure = await run.on(
        """<button>x</button><script>window.seen = [];
        for (const kind of ['click', 'dblclick', 'auxclick', 'contextmenu'])
          document.querySelector('button').addEventListener(kind, e => {
            seen.push([e.type, e.button, e.detail, e.shiftKey].join(' ')); e.preventDefault(); });
        </script>""",
        {"type": "click", "selector": "button", "modifiers": ["Shift"]},
        {"type": "click", "selector": "button", "count": 2},
        {"type": "click", "selector": "button", "button": "middle"},
        {"type": "click", "selector": "button", "button": "right"},
    )
    assert failure is None
    seen = await run.page.evaluate("seen")
    assert seen[:2] == ["click 0 1 true", "click 0 1 false"]
    assert "dblclick 0 2 false" in seen
    assert any(line.startswith("auxclick 1") for line in seen)
    assert any(line.startswith("contextmenu 2") for line in seen)


async def test_a_covered_or_disabled_element_is_named_and_nothing_has_begun(run: Runner) -> None:
    markup = "<button id=d disabled>x</button><button id=c>y</button><div style='%s'></div>"
    cover = "position:fixed;inset:0;background:#ccc"
    failure = await run.on(markup % cover, {"type": "click", "selector": "#c", "timeout": 600})
    assert failure is not None
    assert failure.reason is Reason.STEP_TIMEOUT
    assert "intercepts pointer events" in failure.detail
    failure = await run.on(markup % "", {"type": "click", "selector": "#d", "timeout": 600})
    assert failure is not None
    assert "element is not enabled" in failure.detail
    failure = await run.on("<a hidden>x</a>", {"type": "click", "selector": "a", "timeout": 600})
    assert failure is not None
    assert failure.reason is Reason.STEP_TIMEOUT
    assert "element is not visible" in failure.detail
    assert run.evidence.begun == []


async def test_force_clicks_what_is_covered(run: Runner) -> None:
    failure = await run.on(
        "<button>y</button><div style='position:fixed;inset:0' onclick='document.title=1'></div>",
        {"type": "click", "selector": "button", "force": True},
    )
    assert failure is None
    assert await run.page.title() == "1"


@pytest.mark.parametrize(
    ("markup", "value", "wanted"),
    [
        ("<input id=x value=old>", "new", "new"),
        ("<textarea id=x>old</textarea>", "a\nb", "a\nb"),
        ("<input id=x type=number>", "12.5", "12.5"),
        ("<input id=x type=date>", "2026-03-04", "2026-03-04"),
        ("<input id=x type=time>", "10:20", "10:20"),
        ("<input id=x type=color>", "#ff0000", "#ff0000"),
        ("<input id=x type=range max=10>", "7", "7"),
        ("<select id=x><option value=1>One<option value=2>Two</select>", "2", "2"),
        ("<select id=x><option value=1>One<option value=2>Two</select>", "Two", "2"),
        ("<input id=x type=checkbox>", "true", True),
        ("<input id=x type=checkbox checked>", "no", False),
        ("<input id=x type=radio>", "on", True),
        ("<div id=x contenteditable>old</div>", "new", "new"),
    ],
)
async def test_fill_knows_every_kind_of_field(
    run: Runner, markup: str, value: str, wanted: str | bool
) -> None:
    assert await run.on(markup, {"type": "fill", "selector": "#x", "value": value}) is None
    got = await run.page.evaluate(
        "['checkbox', 'radio'].includes(x.type) ? x.checked : x.value ?? x.innerText"
    )
    assert got == wanted
    assert run.evidence.begun == []


@pytest.mark.parametrize(
    ("markup", "value"),
    [
        ("<input id=x type=number>", "many"),
        ("<input id=x type=date>", "tomorrow"),
        ("<input id=x type=file>", "x"),
        ("<input id=x type=checkbox>", "perhaps"),
        ("<input id=x type=radio checked>", "false"),
        ("<p id=x>text</p>", "x"),
    ],
)
@pytest.mark.parametrize("effect", [None, "once"])
async def test_a_value_a_field_does_not_take_is_invalid(
    run: Runner, markup: str, value: str, effect: str | None
) -> None:
    failure = await run.on(
        markup, {"type": "fill", "selector": "#x", "value": value, "effect": effect}
    )
    assert failure is not None
    assert failure.reason is Reason.VALUE_INVALID
    assert len(run.evidence.begun) == len(run.evidence.done) == (effect is not None)


async def test_fill_can_submit(run: Runner, site: Site) -> None:
    site.pages["/"] = "<form action=/found><input name=q></form>"
    site.pages["/found"] = "ok"
    failure = await run(
        {"type": "goto", "url": site.url},
        {"type": "fill", "selector": "input", "value": "tea", "submit": True},
        {"type": "wait_for_url", "url": "**/found?q=tea"},
    )
    assert failure is None
    assert [event.index for event in run.evidence.begun] == [1]


async def test_type_presses_keys_and_enter(run: Runner) -> None:
    failure = await run.on(
        "<form onsubmit='document.title=i.value; return false'><input id=i value='a'></form>",
        {"type": "type", "selector": "#i", "text": "bc\n", "delay": 5},
    )
    assert failure is None
    assert await run.page.title() in ("abc", "bca")
    assert len(run.evidence.begun) == 1


async def test_press_goes_to_the_element_or_to_the_focus(run: Runner) -> None:
    failure = await run.on(
        "<input id=a><input id=b autofocus><script>b.focus()</script>",
        {"type": "press", "key": "x"},
        {"type": "press", "key": "y", "selector": "#a"},
        {"type": "press", "key": "Control+A", "selector": "#a"},
        {"type": "press", "key": "Delete"},
    )
    assert failure is None
    assert await run.page.evaluate("[a.value, b.value]") == ["", "x"]


async def test_a_key_there_is_not_is_invalid_and_no_doubt_remains(run: Runner) -> None:
    failure = await run.on("<p>", {"type": "press", "key": "Entre"})
    assert failure is not None
    assert failure.reason is Reason.VALUE_INVALID
    assert run.evidence.done == ["s0.0"]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({"value": "b"}, ["b"]),
        ({"label": "Cee"}, ["c"]),
        ({"index": 0}, ["a"]),
        ({"value": ["a", "c"]}, ["a", "c"]),
        ({"index": [1, 2]}, ["b", "c"]),
    ],
)
async def test_select_chooses_by_value_label_or_index(
    run: Runner, how: dict[str, Any], wanted: list[str]
) -> None:
    failure = await run.on(
        "<select id=s multiple><option value=a>Aye<option value=b>Bee"
        "<option value=c> Cee </select>",
        {"type": "select", "selector": "#s", **how},
    )
    assert failure is None
    assert await run.page.evaluate("[...s.selectedOptions].map(o => o.value)") == wanted


async def test_an_option_may_come_late(run: Runner) -> None:
    failure = await run.on(
        "<select id=s></select><script>setTimeout(() => s.add(new Option('A', 'a')), 200)</script>",
        {"type": "select", "selector": "#s", "value": "a"},
    )
    assert failure is None


async def test_an_option_there_is_not_is_not_found_and_nothing_has_begun(run: Runner) -> None:
    failure = await run.on(
        "<select id=s><option>Aye</select>",
        {"type": "select", "selector": "#s", "label": "Bee", "timeout": 1_000},
    )
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_NOT_FOUND
    assert "no option 'Bee'" in failure.detail
    assert "'Aye'" in failure.detail
    assert run.evidence.begun == []


async def test_check_and_uncheck(run: Runner) -> None:
    failure = await run.on(
        "<input id=a type=checkbox><input id=b type=checkbox checked><input id=r type=radio>",
        {"type": "check", "selector": "#a"},
        {"type": "uncheck", "selector": "#b"},
        {"type": "check", "selector": "#r"},
    )
    assert failure is None
    assert await run.page.evaluate("[a.checked, b.checked, r.checked]") == [True, False, True]
    assert len(run.evidence.done) == 3


async def test_hover_reaches_the_element(run: Runner) -> None:
    failure = await run.on(
        "<p onmouseenter='document.title=1'>x</p>", {"type": "hover", "selector": "p"}
    )
    assert failure is None
    assert await run.page.title() == "1"


DRAGGED = """<style>div { position: absolute; width: 40px; height: 40px }</style>
<div id=box style="left: 10px; top: 10px">box</div>
<div id=goal style="left: 300px; top: 200px">goal</div>
<script>let at = null;
box.onmousedown = e => { at = [e.clientX - box.offsetLeft, e.clientY - box.offsetTop] }
document.onmousemove = e => { if (at) { box.style.left = e.clientX - at[0] + 'px'
  box.style.top = e.clientY - at[1] + 'px' } }
document.onmouseup = () => { at = null }</script>"""


@pytest.mark.parametrize(
    ("way", "place"),
    [({"to": "#goal"}, [300, 200]), ({"x": 25}, [35, 10]), ({"x": -5, "y": 60}, [5, 70])],
)
async def test_drag_takes_an_element_to_another_or_some_way_off(
    run: Runner, way: dict[str, Any], place: list[int]
) -> None:
    assert await run.on(DRAGGED, {"type": "drag", "selector": "#box", **way}) is None
    assert await run.page.evaluate("[box.offsetLeft, box.offsetTop]") == place
    assert len(run.evidence.begun) == len(run.evidence.done) == 1


@pytest.mark.parametrize("apart", [50, 2000])
async def test_drag_does_what_the_browser_s_own_drag_and_drop_does(run: Runner, apart: int) -> None:
    native = f"""<p id=a draggable=true
           ondragstart="event.dataTransfer.setData('text', 'moved')">a</p>
        <div id=b style="height: {apart}px"></div>
        <p id=c ondragover="event.preventDefault()"
           ondrop="this.textContent = event.dataTransfer.getData('text')">c</p>"""
    assert await run.on(native, {"type": "drag", "selector": "#a", "to": "#c"}) is None
    assert await run.page.inner_text("#c") == "moved"


@pytest.mark.parametrize("step", [{"selector": "#none", "x": 1}, {"selector": "#box", "to": "#no"}])
async def test_nothing_has_begun_of_a_drag_without_its_element_or_its_goal(
    run: Runner, step: dict[str, Any]
) -> None:
    failure = await run.on(DRAGGED, {"type": "drag", "timeout": 900, **step})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_NOT_FOUND
    assert run.evidence.begun == []


async def test_scroll_by_pixels_to_the_ends_and_to_an_element(run: Runner) -> None:
    await run.page.set_content(
        "<style>html{scroll-behavior:smooth}</style><div style='height:5000px'></div>"
        "<p>x</p><div style='height:5000px'></div>"
    )
    ends = []
    for step in ({"y": 300}, {"to": "bottom"}, {"to": "top"}, {"to": "p"}):
        assert await run({"type": "scroll", **step}) is None
        ends.append(await run.page.evaluate("scrollY"))
    assert ends[0] == 300
    assert ends[1] > 9_000
    assert ends[2] == 0
    assert 3_000 < ends[3] < 5_100


LATE = """<p hidden>x</p><b>going</b><script>setTimeout(() => {
  document.querySelector('p').hidden = false; document.querySelector('b').remove();
  document.body.insertAdjacentHTML('beforeend', '<i>1</i><i>2</i>'); }, 200)</script>"""


@pytest.mark.parametrize(
    "wanted",
    [
        {"selector": "p"},
        {"selector": "i"},
        {"selector": "b", "state": "hidden"},
        {"selector": "b", "state": "detached"},
        {"selector": "i", "state": "attached"},
        {"selector": "i", "count": 2},
        {"selector": "i", "count": 2, "operator": "=="},
        {"selector": "b", "count": 0, "operator": "<="},
    ],
)
async def test_wait_for_waits_for_the_state_or_count(run: Runner, wanted: dict[str, Any]) -> None:
    assert await run.on(LATE, {"type": "wait_for", **wanted}) is None


@pytest.mark.parametrize(
    ("wanted", "reason", "words"),
    [
        ({"selector": "#no"}, Reason.SELECTOR_NOT_FOUND, "nothing visible matched within 0.9 s"),
        ({"selector": "s"}, Reason.SELECTOR_NOT_FOUND, "nothing visible matched"),
        ({"selector": "u", "state": "hidden"}, Reason.STEP_TIMEOUT, "did not become hidden"),
        ({"selector": "u", "count": 3}, Reason.SELECTOR_NOT_FOUND, "matches 1, not >= 3"),
        ({"selector": "u["}, Reason.SELECTOR_INVALID, "u["),
        ({"selector": "u[", "count": 1}, Reason.SELECTOR_INVALID, "u["),
    ],
)
async def test_wait_for_says_what_did_not_come(
    run: Runner, wanted: dict[str, Any], reason: Reason, words: str
) -> None:
    failure = await run.on(
        "<u>x</u><s hidden>y</s>", {"type": "wait_for", "timeout": 900, **wanted}
    )
    assert failure is not None
    assert failure.reason is reason
    assert words in failure.detail


async def test_wait_is_not_bounded_by_the_step_clock(run: Runner) -> None:
    assert await run({"type": "wait", "ms": 300}, timeouts={"step": 200}) is None


async def test_pictures_prints_and_markup_become_artifacts(run: Runner) -> None:
    failure = await run.on(
        "<p>hello</p>",
        {"type": "screenshot", "full_page": True},
        {"type": "screenshot", "name": "small.jpg", "quality": 50},
        {"type": "screenshot", "name": "p", "selector": "p", "format": "jpeg"},
        {"type": "pdf"},
        {"type": "html"},
    )
    assert failure is None
    files = run.evidence.files
    assert {name: media for name, (_, media) in files.items()} == {
        "screenshot.png": "image/png",
        "small.jpg": "image/jpeg",
        "p.jpg": "image/jpeg",
        "page.pdf": "application/pdf",
        "page.html": "text/html",
    }
    assert files["screenshot.png"][0].startswith(b"\x89PNG")
    assert files["small.jpg"][0].startswith(b"\xff\xd8")
    assert files["page.pdf"][0].startswith(b"%PDF")
    assert b"<p>hello</p>" in files["page.html"][0]


async def test_a_farm_without_room_fails_the_step(run: Runner) -> None:
    run.evidence.full = True
    failure = await run.on("<p>x</p>", {"type": "html"})
    assert failure is not None
    assert failure.reason is Reason.ARTIFACT_STORE_FULL
    assert run.evidence.notices == ["capture_failed", "capture_failed"]


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("1 + 1", 2),
        ("() => document.title", "T"),
        ("async args => args.a + 1", 6),
        ("return args.a * 2", 10),
        ("const x = await Promise.resolve(3); return x", 3),
        ("undefined", None),
        ("({a: [1, 2.5, null, 'x', true]})", {"a": [1, 2.5, None, "x", True]}),
        ("new Date(0)", "1970-01-01T00:00:00+00:00"),
        ("`${document.title}`", "T"),
        ("'${params.p}' + '$${'", "v${"),
    ],
)
async def test_eval_keeps_what_the_script_gives(run: Runner, script: str, wanted: object) -> None:
    failure = await run.on(
        "<title>T</title>",
        {"type": "eval", "script": script, "args": {"a": 5}, "var": "got"},
        {"type": "assert", "var": "got", "equals": wanted},
        params={"p": "v"},
    )
    assert failure is None, failure


@pytest.mark.parametrize(
    ("script", "words", "over"),
    [
        ("() => { throw new Error('boom') }", "Error: boom", False),
        ("Promise.reject(new TypeError('no'))", "TypeError: no", False),
        ("throw 'text'", "text", False),
        ("const a = ;", "SyntaxError: Unexpected token ';'", True),
        ("0/0", "not JSON", True),
        ("const a = {}; a.a = a; a", "not JSON", True),
    ],
)
async def test_a_script_that_fails_says_what_the_page_said(
    run: Runner, script: str, words: str, over: bool
) -> None:
    failure = await run.on("<p>", {"type": "eval", "script": script})
    assert failure is not None
    assert failure.reason is Reason.SCRIPT_ERROR
    assert words in failure.detail
    assert "UtilityScript" not in failure.detail
    assert run.evidence.done == (["s0.0"] if over else [])


@pytest.mark.parametrize(
    "claim",
    [
        {"selector": "p"},
        {"selector": "p", "text": "late words"},
        {"text": "late words"},
        {"url": "about:*"},
        {"var": "n", "equals": 1},
        {"var": "n", "selector": "p", "text": "words"},
    ],
)
async def test_assert_waits_until_it_holds(run: Runner, claim: dict[str, Any]) -> None:
    failure = await run.on(
        "<script>setTimeout(() => document.body.innerHTML = '<p>late\\n  words</p>', 200)</script>",
        {"type": "set", "var": "n", "value": 1},
        {"type": "assert", **claim},
    )
    assert failure is None


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"selector": "b"}, "nothing visible matches 'b'"),
        ({"selector": "p", "text": "no"}, "'p' says 'yes', not 'no'"),
        ({"text": "no"}, "the page does not say 'no'"),
        ({"url": "**/x"}, "the address is about:blank, not **/x"),
        ({"var": "n", "equals": "1"}, '${vars.n} is 1, not "1"'),
        ({"var": "zero"}, "${vars.zero} is 0"),
        ({"text": "no", "message": "must be no"}, "must be no (the page"),
    ],
)
async def test_assert_says_what_does_not_hold(
    run: Runner, claim: dict[str, Any], words: str
) -> None:
    failure = await run.on(
        "<p>yes</p>",
        {"type": "set", "var": "n", "value": 1},
        {"type": "set", "var": "zero", "value": 0},
        {"type": "assert", "timeout": 900, **claim},
    )
    assert failure is not None
    assert failure.reason is Reason.ASSERTION_FAILED
    assert words in failure.detail


async def test_set_and_references_carry_values_between_steps(run: Runner) -> None:
    failure = await run.on(
        "<title>Tea</title><input id=i>",
        {"type": "eval", "script": "({list: [{n: 4}]})", "var": "made", "effect": "none"},
        {
            "type": "set",
            "var": "copy",
            "value": {"n": "${vars.made.list.0.n}", "t": "${page.title}"},
        },
        {"type": "assert", "var": "copy", "equals": {"n": 4, "t": "Tea"}},
        {"type": "fill", "selector": "#i", "value": "${vars.copy.n} of ${page.title}"},
        {"type": "eval", "script": "a => a", "args": ["${vars.made}"], "var": "back"},
    )
    assert failure is None
    assert await run.page.evaluate("i.value") == "4 of Tea"


async def test_an_unknown_name_fails_with_the_nearest_one(run: Runner) -> None:
    failure = await run.on(
        "<input id=i>",
        {"type": "set", "var": "colour", "value": 1},
        {"type": "fill", "selector": "#i", "value": "${vars.color}"},
    )
    assert failure is not None
    assert failure.reason is Reason.VALUE_INVALID
    assert "${vars.color}" in failure.detail
    assert "did you mean ${vars.colour}?" in failure.detail


async def test_posted_data_arrive_as_filled(run: Runner, site: Site) -> None:
    got: list[dict[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        got.append({k: str(v) for k, v in (await request.post()).items()})
        return web.Response(text=json.dumps("ok"))

    site.pages["/"] = (
        "<form method=post action=/take><input name=a><select name=s><option>x<option>y</select>"
        "<input type=checkbox name=c value=on><button>Go</button></form>"
    )
    site.pages["/take"] = take
    failure = await run(
        {"type": "goto", "url": site.url},
        {"type": "fill", "selector": "input[name=a]", "value": "1"},
        {"type": "select", "selector": "select", "value": "y"},
        {"type": "check", "selector": "input[name=c]"},
        {"type": "click", "selector": "role=button[name='Go']"},
    )
    assert failure is None
    assert got == [{"a": "1", "s": "y", "c": "on"}]
