"""People watch a job that runs, and act in it, with a browser of their own."""

import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Position, expect

from farm.cli.exits import ExitCode
from tests.e2e.conftest import RunningFarm, Site, until
from tests.e2e.test_up import Cli

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = """<!doctype html><body style="margin:0;background:white">
<button id=b style="position:absolute;left:0;top:0;width:50%;height:200px">press</button>
<input id=i style="position:absolute;left:50%;top:0;width:50%;height:200px;font-size:40px">
<p id=done style="position:absolute;top:210px"></p>
<script>
const log = [];
for (const kind of ['wheel', 'touchstart', 'touchend'])
  addEventListener(kind, () => log.includes(kind) || log.push(kind), {passive: true});
addEventListener('dragover', e => e.preventDefault());
addEventListener('drop', async e => { e.preventDefault();
  log.push(e.dataTransfer.files[0].name + ' ' + await e.dataTransfer.files[0].text()); });
b.onclick = () => {
  document.body.style.background = 'rgb(0, 0, 255)';
  done.textContent = i.value + ' | ' + log.join(' ');
};
</script>"""
UNTIL_DONE: list[Any] = [
    {"wait_for": {"selector": "#done:not(:empty)", "timeout": "100ms", "optional": True}}
] * 300
"""It is between two steps that a person takes over; when it is done they take no time any more."""


@pytest.fixture(scope="module")
def cli(farm: RunningFarm, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(farm, tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def at_work(cli: Cli, site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job whose page waits for a person; its id."""
    directory = tmp_path_factory.mktemp("site")
    (directory / "page.html").write_text(PAGE)
    job = directory / "job.json"
    steps = [
        {"goto": f"{site(directory)}/page.html"},
        *UNTIL_DONE,
        {"extract": {"fields": {"done": "#done"}}},
    ]
    job.write_text(json.dumps({"name": "waits for a person", "steps": steps}))
    return str(cli.json("jobs", "submit", str(job))["id"])


def pixel(place: Page | Locator, at: tuple[float, float]) -> tuple[int, int, int]:
    """What the viewer sees at a place of the picture."""
    canvas = place.locator("canvas").first
    shot = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
    return shot.getpixel((int(at[0] * shot.width), int(at[1] * shot.height)))  # type: ignore[return-value]


def link(farm: RunningFarm, page: Page, job_id: str, **wanted: str) -> str:
    """A link to the tab a job runs in, once it does."""
    headers = {"Authorization": f"Bearer {farm.token}"}
    found: list[str] = []

    def runs() -> bool:
        workers = page.request.get(f"{farm.url}/v1/workers", headers=headers).json()["items"]
        found[:] = [w["live"] for w in workers if (w["assignment"] or {}).get("job_id") == job_id]
        return bool(found)

    until(runs, lambda: "the job runs in no tab", 20)
    made = page.request.post(
        f"{farm.url}/v1/live-links", headers=headers, data={"context": found[0], **wanted}
    )
    return f"{farm.url}{made.json()['path']}"


def test_a_person_sees_a_job_takes_over_acts_hands_back_and_the_job_goes_on(
    farm: RunningFarm, cli: Cli, at_work: str, browser: Browser
) -> None:
    with browser.new_context() as onlooker, browser.new_context(has_touch=True) as person:
        watching, acting = onlooker.new_page(), person.new_page()
        trouble = listen(watching) + listen(acting)
        watching.goto(link(farm, watching, at_work))
        acting.goto(link(farm, acting, at_work, mode="control", name="anna"))
        assert "link=" not in acting.url
        expect(watching.locator("#state")).to_have_text("automation works")
        expect(watching.locator("#buttons")).to_be_hidden()
        expect(watching.locator("canvas")).to_have_attribute("data-seq", re.compile(r"\d"))
        until(lambda: pixel(watching, (0.5, 0.9)) == (255, 255, 255), lambda: "no white page")

        acting.get_by_role("button", name="Take over").click()
        expect(acting.locator("#state")).to_have_text("you have control", timeout=10_000)
        expect(watching.locator("#state")).to_contain_text("a person has control (anna-")
        canvas = acting.locator("canvas")
        box = canvas.bounding_box()
        assert box is not None
        drop(acting, "note.txt", "dropped")
        acting.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9)
        canvas.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.9})
        acting.mouse.wheel(0, 100)
        canvas.click(position={"x": box["width"] * 0.75, "y": box["height"] * 0.1})
        acting.keyboard.type("Grüße, 1")
        acting.keyboard.press("Backspace")
        paste(acting, "2 pasted")
        compose(acting, "日本")
        button: Position = {"x": box["width"] * 0.25, "y": box["height"] * 0.1}

        def has_pressed() -> bool:
            """Press as a person does who sees that nothing has come of it."""
            if not is_blue(acting):
                canvas.click(position=button)
            return is_blue(acting)

        told = acting.locator("#message")
        until(has_pressed, lambda: f"no blue page; told: {told.text_content()}", 120)
        until(partial(is_blue, watching), lambda: "no blue page for who only watches")

        acting.get_by_role("button", name="Hand back").click()
        expect(watching.locator("#state")).to_have_text("automation works")
        cli("jobs", "watch", at_work)
        expect(watching.locator("#message")).to_have_text(
            re.compile("The tab has closed|The task is over"), timeout=10_000
        )
        assert trouble == []
        url = f"{farm.url}/v1/jobs/{at_work}/events?follow=false"
        history = acting.request.get(url, headers={"Authorization": f"Bearer {farm.token}"}).text()
    items = cli("jobs", "items", at_work).stdout
    assert "Grüße, 2 pasted日本" in items
    for what in ("wheel", "touchstart", "touchend", "note.txt dropped"):
        assert what in items
    for act in ("taken_over", "pointer", "key", "paste", "wheel", "touch", "drop", "handed_back"):
        assert act in history
    for secret in ("Grüße", "pasted", "日本", "note.txt", "dropped"):
        assert secret not in history


def is_blue(place: Page | Locator) -> bool:
    """Whether the viewer sees a page that is blue."""
    red, _, blue = pixel(place, (0.9, 0.9))
    return blue > 200 > red


def listen(page: Page) -> list[str]:
    """Errors of the page, those of its policy included."""
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda m: said.append(m.text) if "Content Security" in m.text else None)
    return said


def paste(page: Page, text: str) -> None:
    """Paste into what has the focus, as a person's Ctrl+V does."""
    page.evaluate(
        """text => { const data = new DataTransfer(); data.setData('text/plain', text);
           document.activeElement.dispatchEvent(
             new ClipboardEvent('paste', {clipboardData: data, cancelable: true})); }""",
        text,
    )


def compose(page: Page, text: str) -> None:
    """Put text together by an input method."""
    page.evaluate(
        """text => document.activeElement.dispatchEvent(
           new CompositionEvent('compositionend', {data: text}))""",
        text,
    )


def drop(page: Page, name: str, text: str) -> None:
    """Drop a file onto the picture."""
    page.evaluate(
        """([name, text]) => { const data = new DataTransfer(), canvas = screen_;
           data.items.add(new File([text], name));
           const box = canvas.getBoundingClientRect();
           canvas.dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true,
             clientX: box.x + box.width / 2, clientY: box.y + box.height * 0.9})); }""",
        [name, text],
    )


def test_the_wall_shows_every_tab_at_work_and_leads_to_each(
    farm: RunningFarm, cli: Cli, site: Site, tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "page.html").write_text("<body style='background:rgb(0,0,255)'>")
    job = tmp_path / "job.json"
    steps = [{"goto": f"{site(tmp_path)}/page.html"}, {"wait": "5m"}]
    job.write_text(json.dumps({"name": "blue", "steps": steps}))
    job_id = cli.json("jobs", "submit", str(job))["id"]
    try:
        until(lambda: job_id in cli("workers", "--json").stdout, lambda: "it does not run", 20)
        assert cli("live", job_id).stdout.startswith(f"{farm.url}/v1/live/T")
        with browser.new_context() as context:
            wall = context.new_page()
            wall.goto(cli("live").stdout.strip())
            tile = wall.locator("#wall a", has_text="blue")
            expect(tile).to_be_visible(timeout=20_000)
            until(lambda: is_blue(tile), lambda: "no blue tile")
            tile.click()
            expect(wall.locator("#job")).to_have_text("blue")
            expect(wall.locator("#buttons")).to_be_hidden()
            assert_no_more(context, wall)
    finally:
        cli("jobs", "cancel", job_id)
        cli("jobs", "watch", job_id, code=ExitCode.CANCELLED)


def assert_no_more(context: BrowserContext, page: Page) -> None:
    """The link is in no address, and opens nothing but the live pages."""
    assert "link=" not in page.url
    assert page.evaluate("document.cookie") == ""
    base = page.url.split("/v1/")[0]
    assert context.request.get(f"{base}/v1/jobs").status == 401
