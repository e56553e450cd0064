"""A tab as people see it and act in it, with a real browser."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError

from agent.chromium.discovery import Found
from agent.chromium.screencast import Fineness
from agent.machine.control import Move
from farm.protocol import messages as wire
from farm.protocol.plan import Egress
from overlay import COLOURS, State
from tests.agent.chromium.journal import goto
from tests.agent.chromium.rig import Rig
from tests.agent.chromium.watching import ChannelEnd, DeadEnd, watched
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)
LOOK: dict[str, Any] = {"op": "want", "width": 640, "height": 640, "fps": 60}
PAINT = "data:text/html,<body style='background:{}'>"
PAINTED = """colour => new Promise(done => { document.body.style.background = colour;
  requestAnimationFrame(() => requestAnimationFrame(done)); })"""
BURST = """() => new Promise(done => { let n = 0; const timer = setInterval(() => {
  document.body.style.background = n++ % 2 ? 'red' : 'green';
  if (n > 20) { document.body.style.background = 'blue'; clearInterval(timer); done(); }
}, 20); })"""
LISTENS = """data:text/html,<body style="margin:0;height:3000px"><input id=i autofocus
 style="position:absolute;left:0;top:0;width:200px;height:40px"><script>
window.seen=[];
for (const kind of ['mousedown','mouseup','click','dblclick','wheel','keydown','keyup','touchstart',
  'touchend','touchcancel','contextmenu'])
  addEventListener(kind, e => seen.push([kind, e.key ?? [Math.round(e.clientX ??
    e.changedTouches[0].clientX), e.button], e.shiftKey].flat().join(' ')), {passive: true});
addEventListener('dragover', e => e.preventDefault());
addEventListener('drop', async e => { e.preventDefault();
  for (const f of e.dataTransfer.files) seen.push('drop ' + f.name + ' ' + await f.text()); });
</script>"""


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    """A browser with one tab, `c`."""
    async with Rig() as one:
        await one.window(viewport={"width": 800, "height": 600})
        yield one


def tab_of(rig: Rig) -> Any:
    return rig.browser._windows["w"].tabs["c"]


class Held:
    """A run that is no more than somebody in control."""

    def __init__(self, rig: Rig) -> None:
        self.control = tab_of(rig).control
        self.history: list[Any] = []
        self.control.begin(self.history.append, lambda: None)

    async def take_over(self, by: str = "anna") -> None:
        self.control.move(Move.TAKE_OVER, by)
        self.control._move(Move.REACH, by)


async def test_every_change_is_seen_and_the_last_one_always(rig: Rig) -> None:
    page = rig.page()
    await page.goto(PAINT.format("red"))
    async with watched(rig) as end:
        end.says(**LOOK)
        await end.sees(RED)
        header, _ = end.pictures[-1]
        assert (header["page_width"], header["page_height"]) == (800, 600)
        assert end.picture().width == 640
        for slowness in (0, 60):  # as fast as it can, and with a viewer that takes its time
            end.says(**{**LOOK, "fps": 5 if slowness else 60})
            await page.evaluate(BURST)
            await end.sees(BLUE)
            await page.evaluate("document.body.style.background = 'white'")
            await end.sees(WHITE)


async def test_it_goes_on_after_navigation_to_other_sites_and_through_reloads(
    rig: Rig, site: Any, other_site: Any
) -> None:
    page = rig.page()
    rig.browser._windows["w"].begin("c", Egress(allow=(site.allow, other_site.allow)))
    site.pages["/red"] = "<body style='background:red'>"
    other_site.pages["/blue"] = "<body style='background:blue'>"
    async with watched(rig) as end:
        end.says(**LOOK)
        await page.goto(f"{site.url}/red")
        await end.sees(RED)
        await page.goto(
            f"{other_site.url.replace('127.0.0.1', 'localhost')}/blue", wait_until="commit"
        )
        await page.goto(f"{other_site.url}/blue")
        await end.sees(BLUE)
        await page.reload()
        await page.goto(PAINT.format("green"))
        await end.sees(GREEN)


async def test_nothing_is_captured_before_somebody_looks_nor_after(rig: Rig) -> None:
    captures: list[str] = []
    context = rig.page().context
    original = context.new_cdp_session

    async def listened(page: Any) -> Any:
        session: Any = await original(page)
        send = session.send

        async def noted(method: str, params: Any = None) -> Any:
            if "creencast" in method:
                captures.append(method)
            return await send(method, params)

        session.send = noted
        session.on("Page.screencastFrame", lambda _: captures.append("frame"))
        return session

    context.new_cdp_session = listened  # type: ignore[method-assign]
    await rig.page().goto(PAINT.format("red"))
    async with watched(rig) as end:
        await end.hears("control")
        assert captures == []
        end.says(**LOOK)
        await end.sees(RED)
        assert "frame" in captures
    assert captures[-1] == "Page.stopScreencast"
    captures.clear()
    await rig.page().evaluate(PAINTED, "blue")
    assert captures == []


async def test_who_takes_no_picture_is_sent_no_other(rig: Rig) -> None:
    page = rig.page()
    await page.goto(PAINT.format("red"))
    async with watched(rig) as end:
        end.takes = False
        end.says(**LOOK)
        await end.until(lambda: end.pictures)
        for colour in ("blue", "green", "white", "blue"):
            await page.evaluate(PAINTED, colour)
        assert len(end.pictures) == 1
        end.takes = True
        end.says(op="took", seq=1)
        await end.sees(BLUE)
        assert len(end.pictures) <= 4


async def test_a_person_in_control_has_mouse_keyboard_touch_clipboard_and_files(rig: Rig) -> None:
    page, held = rig.page(), Held(rig)
    await page.goto(LISTENS)
    async with watched(rig) as end:
        end.says(**LOOK)
        await end.until(lambda: end.pictures)
        end.does(kind="mouse", act="down", x=0.5, y=0.5, button="left")
        assert "take over first" in (await end.hears("refused"))["why"]
        await held.take_over()
        await end.hears("control", phase="human")
        for clicks in (1, 2):
            for act in ("down", "up"):
                end.does(kind="mouse", act=act, x=0.125, y=0.03, button="left", clicks=clicks)
        end.does(kind="key", act="down", key="Shift", code="ShiftLeft", key_code=16, modifiers=8)
        for act in ("down", "up"):
            end.does(kind="key", act=act, key="A", code="KeyA", key_code=65, modifiers=8)
        end.does(kind="key", act="up", key="Shift", code="ShiftLeft", key_code=16)
        end.does(kind="text", text="日本")
        end.does(kind="text", text=" pasted", pasted=True)
        await page.wait_for_function("i.value === 'A日本 pasted'")
        for act in ("down", "up"):
            end.does(kind="key", act=act, key="a", code="KeyA", key_code=65, modifiers=2)
        for act in ("down", "up"):
            end.does(kind="key", act=act, key="Backspace", code="Backspace", key_code=8)
        await page.wait_for_function("i.value === ''")
        end.does(kind="wheel", x=0.5, y=0.5, dy=300)
        await page.wait_for_function("scrollY > 200")
        end.does(kind="touch", act="start", points=[{"id": 0, "x": 0.5, "y": 0.5}])
        end.does(kind="touch", act="end")
        name = "../../a\x00b\\.hidden.txt"
        end.does(kind="drop", x=0.5, y=0.5, name=name, payload=b"hello")
        await page.wait_for_function("seen.some(s => s.startsWith('drop'))")
        seen = await page.evaluate("seen")
    assert [one for one in seen if "click" in one][:3] == ["click 100 0 false"] * 2 + [
        "dblclick 100 0 false"
    ]
    assert "keydown A true" in seen
    assert {"touchstart 400  false", "touchend 400  false"} <= set(seen)
    assert "drop hidden.txt hello" in seen
    acts = [one.act for one in held.history if one.kind == "human_act"]
    assert set(acts) == {"pointer", "key", "paste", "wheel", "touch", "drop"}
    assert "日本" not in str(held.history)
    assert "pasted" not in str(held.history)


async def test_an_act_between_two_pages_is_refused_and_the_watching_goes_on(rig: Rig) -> None:
    page, held = rig.page(), Held(rig)
    await page.goto(LISTENS)
    refusing = [True]
    original = page.context.new_cdp_session

    async def between_pages(of: Any) -> Any:
        session: Any = await original(of)
        send = session.send

        async def sent(method: str, params: Any = None) -> Any:
            if method == "Input.insertText" and refusing:
                refusing.pop()
                raise PlaywrightError("Not attached to an active page")
            return await send(method, params)

        session.send = sent
        return session

    page.context.new_cdp_session = between_pages  # type: ignore[method-assign, assignment]
    async with watched(rig) as end:
        end.says(**LOOK)
        await end.until(lambda: end.pictures)
        await held.take_over()
        end.does(kind="text", text="lost")
        assert "do it again" in (await end.hears("refused"))["why"]
        end.does(kind="text", text="again")
        await page.wait_for_function("i.value === 'again'")
    assert [one.kind for one in held.history].count("human_act") == 1


async def test_what_is_held_down_is_let_go_when_control_ends_however_it_ends(rig: Rig) -> None:
    page, held = rig.page(), Held(rig)
    await page.goto(LISTENS)
    async with watched(rig) as end:
        end.says(**LOOK)
        await end.until(lambda: end.pictures)
        for number, ending in enumerate(("hand back", "let go", "leave", "channel"), start=1):
            await held.take_over()
            end.does(kind="mouse", act="down", x=0.5, y=0.5, button="left")
            end.does(kind="key", act="down", key="Control", code="ControlLeft", key_code=17)
            await page.wait_for_function(
                "n => seen.filter(s => s.startsWith('keydown')).length === n", arg=number
            )
            match ending:
                case "hand back":
                    held.control.move(Move.HAND_BACK, "anna")
                case "let go":
                    end.says(op="let_go")
                case "leave":
                    end.says(op="leave", by="bob")  # who is not in control has nothing to leave
                    end.says(op="leave", by="anna")
                    await end.hears("control", phase="paused")
                case _:
                    end.close()
            await page.wait_for_function(
                "n => seen.filter(s => s.startsWith('keyup')).length === n", arg=number
            )
            await page.wait_for_function(
                "n => seen.filter(s => s.startsWith('mouseup')).length === n", arg=number
            )
            if held.control.holder.value == "human":
                held.control.move(Move.HAND_BACK, "anna")
            held.control._set(type(held.control.holder).AUTOMATION)


async def test_automation_goes_on_only_when_everything_has_been_let_go(
    rig: Rig,
) -> None:
    page, held = rig.page(), Held(rig)
    await page.goto(LISTENS)
    async with watched(rig) as end, asyncio.TaskGroup() as group:
        end.says(**LOOK)
        await end.until(lambda: end.pictures)
        held.control.move(Move.TAKE_OVER, "anna")
        step = group.create_task(held.control.gate())
        await end.hears("control", phase="human")
        end.does(kind="mouse", act="down", x=0.5, y=0.5, button="left")
        await page.wait_for_function("seen.some(s => s.startsWith('mousedown'))")
        assert not step.done()
        held.control.move(Move.HAND_BACK, "anna")
        await step
        assert any(s.startswith("mouseup") for s in await page.evaluate("seen"))


async def test_others_are_refused_while_one_has_control(rig: Rig) -> None:
    held = Held(rig)
    async with watched(rig) as end:
        end.says(**LOOK)
        await held.take_over("anna")
        await end.hears("control", phase="human", by="anna")
        end.does(kind="text", text="x", by="bob")
        assert (await end.hears("refused"))["why"] == "anna is in control"


async def test_who_watches_is_told_that_the_tab_has_crashed_closed_or_gone(
    headless_browser: Found,
) -> None:
    async with Rig() as rig:
        for name in ("crash", "close", "flood", "task", "kill"):
            await rig.window(name, name)
        ends = {name: ChannelEnd() for name in ("crash", "close", "flood", "task", "kill", "none")}
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for name, end in ends.items():
                end.says(**LOOK)
                group.create_task(rig.browser.watch(name, end))
            for name in ("crash", "close", "flood", "task", "kill"):
                await ends[name].until(lambda end=ends[name]: end.pictures)  # type: ignore[misc]
            crashing = group.create_task(_crash(rig))
            await rig.page("close", "close").close()
            rig.browser._windows["task"].tabs["task"].begin_task()
            rig.browser._windows["flood"].tabs["flood"].flooded()
            for name, why in (
                ("crash", "tab_crashed"),
                ("close", "tab_closed"),
                ("flood", "tab_crashed"),
                ("task", "task_over"),
                ("none", "tab_closed"),
            ):
                assert (await ends[name].hears("closed"))["reason"] == why
            await rig.browser.kill()
            assert (await ends["kill"].hears("closed"))["reason"] == "browser_lost"
            crashing.cancel()
            for end in ends.values():
                end.close()


async def _crash(rig: Rig) -> None:
    try:
        await rig.page("crash", "crash").goto("chrome://crash")
    except PlaywrightError:
        return


async def test_a_farm_that_says_what_means_nothing_ends_the_channel_and_nothing_else(
    rig: Rig,
) -> None:
    for frame in ("", "[]", "\x00", '{"op":"frame"}', '{"op":"want","fps":-1}', "[" * 9999):
        async with watched(rig) as end:
            end._to_tab.put_nowait((frame, None))
            assert (await end.hears("closed"))["reason"] == "not_understood"
    assert await rig.page().evaluate("1 + 1") == 2


async def test_a_channel_that_takes_nothing_ends_the_watching(rig: Rig) -> None:
    end = DeadEnd()
    end.says(**LOOK)
    async with asyncio.timeout(PATIENCE_S):
        await rig.browser.watch("c", end)


async def test_files_are_bounded_and_go_with_the_tab(rig: Rig) -> None:
    held = Held(rig)
    await rig.page().goto(LISTENS)
    async with watched(rig) as end:
        end.says(**LOOK)
        await held.take_over()
        await end.hears("control", phase="human")
        place = rig.browser._life.place  # type: ignore[union-attr]
        end.does(kind="drop", x=0.5, y=0.5, name="a", payload=bytes(8 * 1024 * 1024 + 1))
        assert "at most" in (await end.hears("refused"))["why"]
        for number in range(21):
            end.does(kind="drop", x=0.5, y=0.5, name=f"{number}", payload=b"x")
        assert "at most 20" in (await end.hears("refused"))["why"]
        assert len(list(place.glob("drop-*"))) == 20
    await rig.browser.close_tab("c")
    await rig.until(lambda: not list(place.glob("drop-*")))


async def test_headed_with_the_overlay_or_without_and_under_the_guard(
    full_browser: Found, display: str
) -> None:
    colour: Any = tuple(bytes.fromhex(COLOURS[State.WORKING][1:]))
    async with (
        Rig(headless=False, guard=True, env={**os.environ, "DISPLAY": display}) as rig,
        asyncio.TaskGroup() as group,
    ):
        page = await rig.window(viewport={"width": 800, "height": 600})
        steps = [goto(LISTENS), *[{"type": "wait", "ms": 100}] * 200]
        run = group.create_task(rig.run(*steps))
        await rig.until(lambda: rig.journal.begun("wait"))
        async with watched(rig) as end:
            end.says(**LOOK)
            await end.sees(colour, (0.5, 0.002))
            end.says(**LOOK, overlay=False)
            await end.sees(WHITE, (0.5, 0.002))
            end.says(**LOOK, overlay=True)
            await end.sees(colour, (0.5, 0.002))
            await intervene(rig, "takeover")
            await end.hears("control", phase="human", by="anna")
            end.does(kind="mouse", act="down", x=0.5, y=0.5, button="left")
            end.does(kind="key", act="down", key="a", code="KeyA", key_code=65)
            await page.wait_for_function("seen.some(s => s.startsWith('keydown'))")
            await intervene(rig, "hand_back")
            await page.wait_for_function("seen.some(s => s.startsWith('mouseup'))")
            await page.wait_for_function("seen.some(s => s.startsWith('keyup'))")
            end.does(kind="mouse", act="down", x=0.5, y=0.5, button="left")
            assert "nobody is in control" in (await end.hears("refused"))["why"]
        run.cancel()


async def intervene(rig: Rig, kind: Any) -> None:
    """Do what a person wants, as the farm says it."""
    token = wire.Token(store_epoch=1, counter=1)
    wanted = wire.Intervene(intervention_id="i", command_id="c", token=token, kind=kind, by="anna")
    await rig.browser.intervene("c", wanted)


def test_pictures_get_smaller_at_once_and_finer_after_a_while() -> None:
    fineness = Fineness()
    best = fineness.quality
    assert fineness.took(1.0)
    assert fineness.quality < best
    assert [fineness.took(1.0) for _ in range(5)] == [True, True, False, False, False]
    assert (fineness.quality, fineness.scale) == (40, 0.5)
    assert sum(fineness.took(0.01) for _ in range(60)) == 3
    assert fineness.quality == best
    assert not fineness.took(0.2)
