"""The overlay on every kind of page, and nowhere where it does not belong: judged by pixels."""

import asyncio
import io
import json
import os
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image
from playwright.async_api import Page

from agent.chromium.discovery import Found
from agent.chromium.overlays import GLANCE_S
from agent.ports import Outcome
from agent.xvfb import Xvfb
from farm.protocol.failures import Reason
from farm.protocol.messages import Items, StepEnded
from overlay import State
from tests.agent.chromium.conftest import Site, serving
from tests.agent.chromium.journal import Journal, goto, plan, script
from tests.agent.chromium.overlaid import (
    KINDS,
    REMOVER,
    SCRIPTED,
    Files,
    Looking,
    Screen,
    served,
    sides,
)
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FOR_EVER = {"type": "wait", "ms": 60_000}
THERE = {"type": "wait_for", "selector": "html > :nth-child(3)", "state": "attached"}
"""It is in the page."""
UNDER_THE_PANEL = served(
    "<!doctype html><button onclick='this.textContent = ++n' style='position: fixed;"
    " top: 0; right: 0; width: 440px; height: 90px'>0</button><script>var n = 0</script>"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(full_browser: Found) -> AsyncIterator[Rig]:
    xvfb = Xvfb()
    env = {**os.environ, "DISPLAY": await xvfb.start(os.environ)}
    async with Rig(headless=False, env=env) as one:
        yield one
    await xvfb.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with serving() as one:
        one.pages |= {f"/{name}": page for name, page in (KINDS | SCRIPTED).items()}
        one.pages |= {"/remover": REMOVER, "/under": UNDER_THE_PANEL}
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(rig: Rig, site: Site) -> Screen:
    """A tab for tests that leave it as it was."""
    return await Screen.open(rig, site, "shared")


@pytest_asyncio.fixture(loop_scope="module")
async def screen(rig: Rig, site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Screen]:
    """A tab of the test's own."""
    name = re.sub(r"\W", "-", request.node.name)[:60]
    one = await Screen.open(rig, site, name, viewport={"width": 900, "height": 600})
    yield one
    await rig.browser.close_tab(name)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_frame_is_on_all_four_sides_of(shared: Screen, kind: str) -> None:
    await shared.page.goto(f"{shared.site.url}/{kind}", wait_until="commit")
    await shared.until(shared.framed)


@pytest.mark.parametrize("kind", SCRIPTED)
async def test_the_frame_stays_whatever_a_page_does_to_itself(shared: Screen, kind: str) -> None:
    await shared.page.goto(f"{shared.site.url}/{kind}", wait_until="commit")
    await shared.page.wait_for_function("document.title === 'ready'")
    await shared.until(shared.framed)


@pytest.mark.parametrize(
    "url", ["about:blank", "data:text/html,<p>data", "https://127.0.0.1:1/", "view-source:"]
)
async def test_the_frame_is_on_pages_without_a_site(shared: Screen, url: str) -> None:
    await shared.page.goto("about:blank")
    if url == "https://127.0.0.1:1/":
        with pytest.raises(Exception, match="ERR_"):
            await shared.page.goto(url)
    else:
        await shared.page.goto(url + (shared.site.url if url == "view-source:" else ""))
    await shared.until(shared.framed)


async def test_the_frame_is_on_a_blob_and_on_an_element_in_fullscreen(shared: Screen) -> None:
    await shared.page.goto(shared.site.url)
    blob = "URL.createObjectURL(new Blob(['<h1>blob</h1>'], {type: 'text/html'}))"
    await shared.page.evaluate(f"location = {blob}")
    await shared.page.wait_for_url("blob:**")
    await shared.until(shared.framed)
    await shared.page.evaluate("onclick = () => document.querySelector('h1').requestFullscreen()")
    await shared.page.mouse.click(50, 40)
    await shared.page.wait_for_function("document.fullscreenElement")
    await shared.until(shared.framed)
    await shared.page.evaluate("document.exitFullscreen()")


async def test_nothing_is_inside_the_frames_of_a_page(shared: Screen) -> None:
    await shared.page.goto(f"{shared.site.url}/frames")
    await shared.until(shared.framed)
    for frame in shared.page.frames[1:]:
        assert await frame.evaluate("document.documentElement.children.length") == 2
    assert await shared.page.evaluate("document.documentElement.children.length") == 3


async def test_a_pages_style_of_backdrops_does_not_make_ours_cover_the_page(
    shared: Screen,
) -> None:
    await shared.page.goto(f"{shared.site.url}/backdrop")
    await shared.until(shared.framed)
    host = "document.documentElement.lastElementChild"
    style = f"getComputedStyle({host}, '::backdrop').display"
    assert await shared.page.evaluate(style) == "none"


async def test_a_page_that_removes_it_again_and_again_gets_it_back_at_our_pace(
    shared: Screen,
) -> None:
    await shared.page.goto(f"{shared.site.url}/remover")
    await shared.page.wait_for_function("removed >= 24", timeout=20_000)
    removed, took = await shared.page.evaluate("[removed, took]")
    assert removed <= 21 + took / 450  # 20 at once, and one each half second
    assert await shared.page.evaluate("document.querySelector('h1').textContent") == "Hostile"


async def test_the_scripts_of_a_page_can_call_nothing_of_it(shared: Screen) -> None:
    await shared.page.goto(f"{shared.site.url}/plain")
    await shared.until(shared.framed)
    names = await shared.page.evaluate("Object.getOwnPropertyNames(window)")
    assert [name for name in names if "tabfarm" in name] == []
    host = "document.documentElement.lastElementChild"
    assert await shared.page.evaluate(f"[{host}.shadowRoot, {host}.textContent]") == [None, ""]


async def test_people_read_who_works_on_what_and_how_far_it_is(screen: Screen) -> None:
    look = await screen.looking()
    worker = f"w-{screen.context_id} · {screen.context_id}"[:79]
    await screen.until(look.texts)
    assert (await look.texts())[0].startswith(worker[:20])
    assert "idle" in await look.texts()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(screen.run(goto(f"{screen.site.url}/plain"), FOR_EVER))
        await screen.until(lambda: _has(screen, "step 2 of 2: wait"))
        texts = await look.texts()
        assert {"working", "test", "j", "Stop"} <= set(texts)
        assert [text for text in texts if re.fullmatch(r"00:0\d", text)]
        await screen.until(lambda: screen.framed(State.WORKING))
        await screen.rig.browser.drain()
        assert "draining" in await look.texts()
        await screen.until(lambda: screen.framed(State.DRAINING))
        run.cancel()


async def test_it_names_its_parts_for_those_who_do_not_see_it(screen: Screen) -> None:
    look = await screen.looking()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(screen.run(FOR_EVER))
        await screen.until(lambda: _has(screen, "step 1 of 1: wait"))
        assert (await look.attributes("role", "group"))["aria-label"].startswith(
            "tabfarm worker w-"
        )
        bar = await look.attributes("role", "progressbar")
        assert (bar["aria-valuenow"], bar["aria-valuemax"]) == ("0", "1")
        for what in ("move", "fold", "stop"):
            assert (await look.attributes("data-do", what))["aria-label"]
        run.cancel()


async def test_who_wants_no_motion_gets_none(screen: Screen) -> None:
    look = await screen.looking()
    await screen.until(look.texts)
    await screen.page.emulate_media(reduced_motion="no-preference")
    assert await look.style("role", "progressbar", "transition-duration") == "0.2s"
    await screen.page.emulate_media(reduced_motion="reduce")
    assert await look.style("role", "progressbar", "transition-duration") == "0s"


async def test_a_person_stops_the_job_by_its_button(screen: Screen) -> None:
    look, page = await screen.looking(), screen.page
    async with asyncio.TaskGroup() as group:
        run = group.create_task(screen.run(goto(f"{screen.site.url}/csp-sandbox"), FOR_EVER))
        await screen.until(lambda: _has(screen, "step 2 of 2: wait"))
        await page.mouse.click(*await look.centre("data-do", "stop"))
        async with asyncio.timeout(PATIENCE_S):
            outcome = await run
    assert outcome.outcome == "cancelled"
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.CANCELLED
    assert outcome.failure.step_index == 1
    assert page.is_closed()


@pytest.mark.parametrize(
    "message", ['{"kind": "stop", "run": "another"}', '{"kind": "stop"}', "stop", ""]
)
async def test_nothing_but_the_stop_of_this_run_ends_it(screen: Screen, message: str) -> None:
    placed = {"kind": "placed", "x": 0.5, "y": 0.5, "collapsed": False}
    look = await screen.looking()
    await look.possess()
    await screen.page.goto(f"{screen.site.url}/plain")
    async with asyncio.TaskGroup() as group:
        run = group.create_task(screen.run(FOR_EVER))
        await screen.until(lambda: _has(screen, "step 1 of 1: wait"))
        await screen.until(lambda: look.say(message))
        await screen.until(lambda: look.say(json.dumps(placed)))
        # What was said later has been heard.
        await screen.until(lambda: _true(screen.overlay._picture.placed.x == 0.5))
        assert not run.done()
        await screen.until(lambda: look.say('{"kind": "stop", "run": "a"}'))
    assert run.result().outcome == "cancelled"


async def test_where_a_person_puts_the_panel_it_stays(screen: Screen) -> None:
    look, page = await screen.looking(), screen.page
    async with asyncio.TaskGroup() as group:
        run = group.create_task(screen.run(FOR_EVER))
        await screen.until(lambda: _has(screen, "step 1 of 1: wait"))
        before = await look.box("role", "group")
        await page.mouse.move(*await look.centre("data-do", "move"))
        await page.mouse.down()
        await page.mouse.move(300, 400, steps=4)
        await page.mouse.up()
        moved = await look.box("role", "group")
        assert moved[0] < before[0] - 100
        assert moved[1] > before[1] + 100
        await page.mouse.click(*await look.centre("data-do", "fold"))
        folded = await look.box("role", "group")
        assert folded[3] - folded[1] < moved[3] - moved[1] - 20
        await page.goto(f"{screen.site.url}/plain")
        await screen.until(look.texts)
        assert (await look.attributes("data-do", "fold"))["aria-expanded"] == "false"
        assert await look.box("role", "group") == pytest.approx(folded, abs=2)
        run.cancel()


async def test_the_panel_moves_by_the_keyboard_but_not_by_that_of_a_job(screen: Screen) -> None:
    look, page = await screen.looking(), screen.page
    await screen.until(look.texts)
    before = await look.box("role", "group")
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    moved = await look.box("role", "group")
    assert moved[1] == pytest.approx(before[1] + 20, abs=1)
    await screen.run(
        goto(f"{screen.site.url}/plain"),
        THERE,
        {"type": "press", "key": "Tab"},
        {"type": "press", "key": "ArrowDown"},
    )
    assert await look.box("role", "group") == moved


async def test_no_click_that_is_meant_for_the_page_is_taken(screen: Screen) -> None:
    look, page = await screen.looking(), screen.page
    await page.goto(f"{screen.site.url}/under")
    await screen.until(look.texts)
    left, top, _, bottom = await look.box("role", "group")
    x, y = await look.centre("data-do", "move")
    at = "([x, y]) => document.elementFromPoint(x, y).localName"
    assert await page.evaluate(at, [left + 3, (top + bottom) / 2]) == "button"
    assert (await page.evaluate(at, [x, y])).startswith("tabfarm-")
    seen = f"document.elementFromPoint({x}, {y}).localName"
    outcome = await screen.run(
        {"type": "click", "selector": "button"},
        {"type": "assert", "text": "1"},
        {"type": "hover", "selector": "button"},
        script("addEventListener('click', () => { window.top1 = " + seen + " }, true)"),
        {"type": "click", "selector": "button"},
        {"type": "assert", "text": "2"},
    )
    assert outcome == Outcome(outcome="succeeded")
    assert await page.evaluate("top1") == "button"


async def test_what_is_taken_of_a_page_is_as_if_it_were_not_there(screen: Screen) -> None:
    rig, url = screen.rig, f"{screen.site.url}/plain"
    files = Files()
    outcome = await screen.run(
        goto(url),
        THERE,
        {"type": "screenshot", "name": "a.png"},
        THERE,
        {"type": "screenshot", "name": "full.png", "full_page": True},
        THERE,
        {"type": "pdf", "name": "a.pdf"},
        THERE,
        {"type": "html", "name": "a.html"},
        THERE,
        {"type": "assert", "selector": "html > :nth-child(3)", "optional": True, "timeout": 300},
        THERE,
        script("document.documentElement.children.length", var="n", effect="none"),
        {"type": "assert", "var": "n", "equals": 2},
        {
            "type": "extract",
            "name": "x",
            "list": "html > *",
            "fields": {"page": {"value": "${page.url}"}},
        },
        journal=files,
    )
    assert outcome == Outcome(outcome="succeeded")
    skipped = [event for event in files.events if isinstance(event, StepEnded) and event.skipped]
    assert len(skipped) == 1
    assert [len(event.items) for event in files.events if isinstance(event, Items)] == [2]
    await screen.until(screen.framed)
    assert await screen.page.evaluate("document.documentElement.children.length") == 3
    assert rig.browser._life is not None
    plain = await rig.browser._life.browser.new_page(viewport={"width": 900, "height": 600})
    await plain.goto(url)
    assert await sides(plain) == 0
    assert files.contents["a.png"] == await plain.screenshot()
    assert files.contents["full.png"] == await plain.screenshot(full_page=True)
    assert files.contents["a.html"].decode() == await plain.content()
    assert _undated(files.contents["a.pdf"]) == _undated(
        await plain.pdf(format="A4", print_background=True)
    )
    await plain.close()


async def test_what_a_failure_leaves_is_as_if_it_were_not_there(screen: Screen) -> None:
    files = Files()
    outcome = await screen.run(
        goto(f"{screen.site.url}/plain"),
        THERE,
        {"type": "click", "selector": "#none", "timeout": 100},
        journal=files,
    )
    assert outcome.outcome == "failed"
    assert b"tabfarm" not in files.contents["failure-2.html"]
    assert _corner(files.contents["failure-2.png"]) == (255, 255, 255)


async def test_a_tab_that_a_job_opens_shows_it_too(screen: Screen) -> None:
    async with asyncio.TaskGroup() as group:
        opens = "() => { open('/plain', '_blank') }"
        run = group.create_task(screen.run(goto(f"{screen.site.url}/"), script(opens), FOR_EVER))
        await screen.until(lambda: _true(len(screen.page.context.pages) == 2))
        popup = screen.page.context.pages[1]
        await screen.until(lambda: _is_framed(popup))
        looking = Looking(await popup.context.new_cdp_session(popup))
        assert "this tab closes with its task" in await looking.texts()
        assert "this tab closes with its task" not in await (await screen.looking()).texts()
        run.cancel()


async def test_without_windows_there_is_none(headless_browser: Found) -> None:
    async with Rig() as rig:
        await has_none(rig)


async def test_where_it_is_not_wanted_there_is_none(full_browser: Found, display: str) -> None:
    env = {**os.environ, "DISPLAY": display}
    async with Rig(headless=False, overlay=False, env=env) as rig:
        await has_none(rig)


async def has_none(rig: Rig) -> None:
    page = await rig.window()
    assert rig.browser._windows["w"].tabs["c"].overlay is None
    await rig.run(goto("data:text/html,<p>x"))
    assert await page.evaluate("document.documentElement.children.length") == 2


async def _has(screen: Screen, text: str) -> bool:
    return text in await (await screen.looking()).texts()


async def _true(value: bool) -> bool:
    return value


async def _is_framed(page: Page) -> bool:
    return await sides(page, State.WORKING) == 4


def _undated(content: bytes) -> bytes:
    return re.sub(rb"/(Creation|Mod)Date \(.*?\)", b"", content)


def _corner(content: bytes) -> object:
    return Image.open(io.BytesIO(content)).convert("RGB").getpixel((1, 1))


@pytest.mark.parametrize("shown", [True, False])
async def test_what_is_recorded_shows_it_unless_that_was_asked_not_to_be(
    screen: Screen, shown: bool
) -> None:
    record = {"kinds": ["console"], "overlay": shown}
    steps = (goto(f"{screen.site.url}/under"), FOR_EVER)
    attempt = plan(*steps, record=record, egress={"allow": [screen.site.allow]})
    journal = Journal()
    run = asyncio.create_task(screen.rig.browser.run(screen.context_id, attempt, journal))
    await screen.rig.until(lambda: journal.begun("wait"))
    looking = await screen.looking()
    if shown:
        await screen.until(looking.texts)
    else:
        await screen.page.wait_for_timeout(1000 * GLANCE_S + 700)  # when it comes back by itself
        assert await looking.texts() == []
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
