"""What is recorded of an attempt in a real browser, and what becomes of it when things go wrong."""

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.chromium import processes
from agent.chromium.discovery import Found
from agent.chromium.recording import recordings, snapshot, video
from agent.chromium.recording.encoder import find_ffmpeg
from agent.chromium.recording.recordings import COMPANY
from agent.ports import Outcome, UploadRefused
from farm.protocol.recordings import RecordingKind
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto, plan, script
from tests.agent.chromium.rig import FOR_EVER, Rig
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser

EVERY = [kind.value for kind in RecordingKind]
STILL = [kind for kind in EVERY if kind != "video"]
PAGE = """<title>shop</title><h1>Shoes</h1><input id=pin><script>
console.warn('low stock', 3); setTimeout(() => { throw new Error('not caught') }, 0);
fetch('/api?key=hidden', {method: 'POST', body: 'x'}).then(answer => answer.text())
  .then(() => setTimeout(() => document.body.id = 'answered', 0))
</script>"""
ANSWERED = {"type": "wait_for", "selector": "#answered"}


@pytest.fixture(scope="session")
def ffmpeg() -> str:
    """The encoder of this machine."""
    found = asyncio.run(find_ffmpeg(None, os.environ))
    if found is None:
        reason = "no ffmpeg with libvpx: scripts/system.sh installs one"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    """A browser with a window."""
    async with Rig(executable=headless_browser.executable) as one:
        await one.window()
        yield one


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is given its time; that each is bounded is tested without a browser."""
    for bound in ("START_S", "STOP_S", "HURRY_S"):
        monkeypatch.setattr(recordings, bound, 60)
    monkeypatch.setattr(snapshot, "TAKE_S", 60)
    monkeypatch.setattr(video, "_ENCODE_S", 60)


@pytest.fixture(autouse=True)
def shop(site: Site) -> None:
    site.pages["/shop"] = PAGE

    async def api(_: web.Request) -> web.Response:
        return web.Response(status=202, text="{}")

    site.pages["/api"] = api


def recording(*kinds: str, **keys: Any) -> dict[str, Any]:
    return {"record": {"kinds": kinds, **keys}}


def allowed(site: Site) -> dict[str, Any]:
    return {"egress": {"allow": [site.allow]}}


async def shopping(rig: Rig, site: Site, **keys: Any) -> Outcome:
    steps = (
        goto(f"{site.url}/shop?session=hidden"),
        {"type": "fill", "selector": "#pin", "value": "1234"},
        ANSWERED,
    )
    return await rig.run(*steps, **keys, **allowed(site))


def of(rig: Rig, kind: RecordingKind) -> bytes:
    return rig.journal.recordings[kind]


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def trace_of(rig: Rig) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(of(rig, RecordingKind.TRACE)))


def requested(rig: Rig) -> list[str]:
    har = json.loads(of(rig, RecordingKind.HAR))["log"]
    return [entry["request"]["url"] for entry in har["entries"]]


def frames(content: bytes, ffmpeg: str) -> int:
    """Decode a video whole; return how many pictures it has."""
    counted = [ffmpeg, "-v", "error", "-i", "pipe:0", "-f", "framemd5", "-"]
    done = subprocess.run(counted, input=content, capture_output=True, check=True, timeout=20)
    assert not done.stderr
    return sum(not line.startswith(b"#") for line in done.stdout.splitlines())


def encodes(pid: int) -> bool:
    try:
        return b"video.webm" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


@pytest.fixture
def left_over(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], set[Path]]]:
    """Tell what browsers have left of what this test alone has them write."""
    with tempfile.TemporaryDirectory(prefix="tf-") as own:
        monkeypatch.setattr(tempfile, "tempdir", own)
        yield lambda: set(Path(own).glob("tabfarm-life-*"))


async def test_a_trace_is_one_that_playwrights_viewer_can_read(rig: Rig, site: Site) -> None:
    assert (await shopping(rig, site, **recording("trace"))).outcome == "succeeded"
    assert rig.journal.ends() == {"trace": ("ready", "")}
    with trace_of(rig) as trace:
        assert trace.testzip() is None
        said = lines(trace.read("trace.trace"))
        network = trace.read("trace.network")
        names = trace.namelist()
    assert said[0]["type"] == "context-options"
    assert {"goto", "fill"} <= {one["method"] for one in said if one["type"] == "before"}
    assert any(one["type"] == "frame-snapshot" for one in said)
    assert b"/shop?session=hidden" in network
    assert any(name.startswith("resources/") for name in names)
    assert any(name.endswith(".jpeg") for name in names)


async def test_a_har_is_version_1_2_with_every_request_and_no_contents_of_answers(
    rig: Rig, site: Site
) -> None:
    await shopping(rig, site, **recording("har"))
    assert requested(rig) == [f"{site.url}/shop?session=hidden", f"{site.url}/api?key=hidden"]
    har = json.loads(of(rig, RecordingKind.HAR))["log"]
    assert har["version"] == "1.2"
    assert {"name", "version"} <= har["creator"].keys()
    page, api = har["entries"]
    assert "text" not in page["response"]["content"]
    assert (api["request"]["method"], api["response"]["status"]) == ("POST", 202)
    for entry in har["entries"]:
        assert {
            "startedDateTime",
            "time",
            "request",
            "response",
            "cache",
            "timings",
        } <= entry.keys()


async def test_the_logs_have_a_line_for_each_message_and_request_and_no_queries(
    rig: Rig, site: Site
) -> None:
    await shopping(rig, site, **recording("console", "network"))
    said = lines(of(rig, RecordingKind.CONSOLE))
    assert [(one["type"], one["text"]) for one in said] == [
        ("warning", "low stock 3"),
        ("uncaught", "not caught"),
    ]
    assert (said[0]["url"], said[0]["line"]) == (f"{site.url}/shop", 1)
    seen = lines(of(rig, RecordingKind.NETWORK))
    assert [(one["method"], one["url"], one["type"], one["status"]) for one in seen] == [
        ("GET", f"{site.url}/shop", "document", 200),
        ("POST", f"{site.url}/api", "fetch", 202),
    ]
    assert all(one["at"].endswith("Z") and one["ms"] >= 0 for one in seen)


async def test_a_request_that_is_refused_or_never_answered_says_so(rig: Rig, site: Site) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    site.pages["/never"] = never
    asks = "fetch('/never').catch(() => 0); fetch('http://10.0.0.1/').catch(() => 0)"
    await rig.run(goto(site.url), script(asks), **recording("network"), **allowed(site))
    ends = {one["url"]: one for one in lines(of(rig, RecordingKind.NETWORK))}
    never_answered = ends[f"{site.url}/never"]
    assert never_answered["failure"] == "no answer until the end of the recording"
    assert "status" not in never_answered
    assert ends["http://10.0.0.1/"]["failure"].startswith("net::")


async def filmed(site: Site, ffmpeg: str, executable: str, **settings: Any) -> bytes:
    site.pages["/film"] = """<body><script>let left = 20; const draw = () => {
        document.body.append('x '); if (!--left) document.body.id = 'drawn'
        setTimeout(requestAnimationFrame, 50, draw) }; draw()</script>"""
    async with Rig(executable=executable, ffmpeg=ffmpeg, **settings) as rig:
        await rig.window()
        await rig.run(
            goto(f"{site.url}/film"), {"type": "wait_for", "selector": "#drawn"},
            **recording("video"), **allowed(site),
        )  # fmt: skip
        assert rig.journal.ends() == {"video": ("ready", "")}
        return of(rig, RecordingKind.VIDEO)


async def test_a_video_shows_a_tab_that_nobody_sees(
    headless_browser: Found, ffmpeg: str, site: Site
) -> None:
    assert frames(await filmed(site, ffmpeg, headless_browser.executable), ffmpeg) >= 4


async def test_a_video_shows_a_tab_of_a_window(
    full_browser: Found, display: str, ffmpeg: str, site: Site
) -> None:
    env = {**os.environ, "DISPLAY": display}
    film = await filmed(site, ffmpeg, full_browser.executable, headless=False, env=env)
    assert frames(film, ffmpeg) >= 4


async def test_a_snapshot_is_the_page_with_its_styles_as_it_was_when_the_job_failed(
    rig: Rig, site: Site
) -> None:
    site.pages["/s.css"] = "h1 { color: rgb(1, 2, 3) }"
    site.pages["/styled"] = "<link rel=stylesheet href=/s.css><h1>Before</h1>"
    changed = script("document.querySelector('h1').textContent = 'After'")
    missing = {"type": "click", "selector": "#none", "timeout": 300}
    outcome = await rig.run(
        goto(f"{site.url}/styled"), changed, missing, **recording("dom"), **allowed(site)
    )
    assert outcome.outcome == "failed"
    taken = of(rig, RecordingKind.DOM)
    assert b"After" in taken
    assert b"Before" not in taken
    assert b"Content-Type: text/css" in taken or b"color: rgb(1, 2, 3)" in taken


async def test_kept_on_failure_nothing_is_handed_in_of_a_success(
    left_over: Callable[[], set[Path]], rig: Rig, site: Site
) -> None:
    before = left_over()
    await shopping(rig, site, reuse=True, **recording(*STILL, keep="on_failure"))
    assert rig.journal.ends() == dict.fromkeys(STILL, ("discarded", ""))
    assert rig.journal.recordings == {}
    assert left_over() == before
    fails = {"type": "assert", "selector": "#none", "timeout": 200}
    rig.journal.events.clear()
    await rig.run(fails, **recording(*STILL, keep="on_failure"))
    assert rig.journal.ends() == dict.fromkeys(STILL, ("ready", ""))


async def test_in_a_window_that_stays_a_recording_has_this_attempt_alone(
    rig: Rig, site: Site
) -> None:
    """Nothing of the attempt before it, and nothing of another tab that still asks for things."""
    polling = "<script>setInterval(() => { fetch('/poll'); console.log('polled') }, 30)</script>"
    site.pages["/polling"] = polling
    await rig.browser.open_tab("w", "d")
    before = plan(goto(f"{site.url}/polling"), reuse=True, **allowed(site))
    assert (await rig.browser.run("d", before, rig.journal)).outcome == "succeeded"
    for path in ("/first", "/second"):
        site.pages[path] = PAGE
        rig.journal.events.clear()
        await rig.run(
            goto(site.url + path), ANSWERED, {"type": "wait", "ms": 300},
            reuse=True, **recording(*STILL), **allowed(site),
        )  # fmt: skip
        assert rig.journal.ends() == dict.fromkeys(STILL, ("ready", ""))
    assert site.seen.count("/poll") > 5
    with trace_of(rig) as trace:
        everything = b"".join(trace.read(name) for name in trace.namelist())
        network = trace.read("trace.network")
    for content in (everything, *rig.journal.recordings.values()):
        assert b"poll" not in content
    assert b"/first" not in network  # its first picture is of the page as it was found, though
    assert b"/second" in network
    assert requested(rig) == [f"{site.url}/second", f"{site.url}/api?key=hidden"]


async def test_what_takes_the_whole_window_ends_when_another_attempt_begins_there(
    rig: Rig, site: Site
) -> None:
    await rig.browser.open_tab("w", "d")
    kinds = recording("trace", "har", "network")
    over = {"type": "wait_for", "selector": "#over"}
    attempt = plan(goto(f"{site.url}/shop"), over, **kinds, **allowed(site))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(rig.browser.run("c", attempt, rig.journal))
        await rig.until(lambda: rig.journal.begun("wait_for"))
        other = Rig()
        await rig.browser.run(
            "d", plan(goto(f"{site.url}/other"), **kinds, **allowed(site)), other.journal
        )
        await rig.page().evaluate("document.querySelector('#pin').id = 'over'")
    assert first.result().outcome == "succeeded"
    early = ("ready", f"it ends early: {COMPANY}")
    assert rig.journal.ends() == {"trace": early, "har": early, "network": ("ready", "")}
    refused = ("failed", "another attempt runs in the same window")
    assert other.journal.ends() == {"trace": refused, "har": refused, "network": ("ready", "")}
    assert [one["url"] for one in lines(of(other, RecordingKind.NETWORK))] == [f"{site.url}/other"]
    assert f"{site.url}/other" not in requested(rig)


async def test_each_stops_at_its_bound_and_says_so(ffmpeg: str, site: Site) -> None:
    site.pages["/loud"] = """<body><script>let n = 0; setInterval(() => {
        console.log('x'.repeat(1000)); fetch('/' + 'p'.repeat(500));
        document.body.innerHTML = '<h1>' + 'wide '.repeat(++n % 50)
        document.body.style.background = `hsl(${n * 37},90%,50%)` }, 10)</script>"""
    bound = 8_000
    kinds = [kind for kind in EVERY if kind != "dom"]
    async with Rig(ffmpeg=ffmpeg) as rig:
        await rig.window()
        outcome = await rig.run(
            goto(f"{site.url}/loud"), {"type": "wait", "ms": 2500},
            **recording(*kinds, max_bytes=bound), **allowed(site),
        )  # fmt: skip
        assert outcome.outcome == "succeeded"
        ends = rig.journal.ends()
        early = f"it ends early: it had grown to {bound} bytes"
        # A busy machine may not end a trace of so much in time.
        may_fail = ("too fast", "ended in time")
        for state, detail in ends.values():
            assert detail == early or (state == "failed" and any(so in detail for so in may_fail))
        for kind in (RecordingKind.CONSOLE, RecordingKind.NETWORK):
            assert ends[kind.value] == ("ready", early)
            assert 0 < len(of(rig, kind)) <= bound
            assert lines(of(rig, kind))


async def test_a_page_that_crashes_leaves_what_was_recorded_until_then(
    ffmpeg: str, site: Site
) -> None:
    async with Rig(ffmpeg=ffmpeg) as rig:
        await rig.window()
        outcome = await rig.run(
            goto(f"{site.url}/shop"), ANSWERED, goto("chrome://crash"),
            script("0"), **recording(*EVERY), **allowed(site),
        )  # fmt: skip
        if outcome.outcome == "succeeded" or outcome.failure is None:
            pytest.fail("it did not crash")
        ends = rig.journal.ends()
        assert {kind for kind, (state, _) in ends.items() if state == "ready"} >= {
            "trace", "har", "console", "network",
        }  # fmt: skip
        assert [one["url"] for one in lines(of(rig, RecordingKind.NETWORK))][:1] == [
            f"{site.url}/shop"
        ]


async def test_a_cancelled_attempt_hands_in_what_it_has(
    left_over: Callable[[], set[Path]], rig: Rig, site: Site
) -> None:
    before = left_over()
    attempt = plan(goto(f"{site.url}/shop"), FOR_EVER, **recording(*STILL), **allowed(site))
    run = asyncio.create_task(rig.browser.run("c", attempt, rig.journal))
    await rig.until(lambda: rig.journal.begun("wait"))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert set(rig.journal.ends()) == set(STILL)
    assert rig.journal.ends()["trace"] == ("ready", "")
    assert left_over() == before


async def test_a_browser_that_is_killed_fails_what_it_kept_and_not_the_logs(
    left_over: Callable[[], set[Path]], ffmpeg: str, site: Site
) -> None:
    before = left_over()
    async with Rig(ffmpeg=ffmpeg) as rig:
        await rig.window()
        attempt = plan(goto(f"{site.url}/shop"), FOR_EVER, **recording(*EVERY), **allowed(site))
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            run = group.create_task(rig.browser.run("c", attempt, rig.journal))
            await rig.until(lambda: rig.journal.begun("wait"))
            assert rig.info is not None
            os.kill(rig.info.pid, signal.SIGKILL)
        assert run.result().outcome == "failed"
        states = {kind: state for kind, (state, _) in rig.journal.ends().items()}
        assert states == {
            "video": "ready", "console": "ready", "network": "ready",
            "trace": "failed", "har": "failed", "dom": "failed",
        }  # fmt: skip
        await rig.until(lambda: not [c for c in processes.children(os.getpid()) if encodes(c.pid)])
    assert left_over() == before


async def test_where_the_farm_has_no_room_the_recording_fails_and_the_job_does_not(
    rig: Rig, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> str:
        raise UploadRefused("artifact_store_full", "the farm has no room for trace.zip")

    monkeypatch.setattr(rig.journal, "upload", refuse)
    outcome = await shopping(rig, site, **recording("trace", "network"))
    assert outcome.outcome == "succeeded"
    full = ("failed", "the farm has no room for trace.zip")
    assert rig.journal.ends() == {"trace": full, "network": full}


async def test_an_encoder_that_fails_is_quoted(
    headless_browser: Found, site: Site, tmp_path: Path
) -> None:
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\ncat >/dev/null\necho 'No space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    async with Rig(executable=headless_browser.executable, ffmpeg=str(broken)) as rig:
        await rig.window()
        assert (await shopping(rig, site, **recording("video"))).outcome == "succeeded"
        said = "the encoder failed: No space left on device"
        assert rig.journal.ends() == {"video": ("failed", said)}


async def test_the_driver_s_files_of_traces_do_not_gather(rig: Rig, site: Site) -> None:
    life = rig.browser._life
    assert life is not None
    for number in range(3):
        await rig.window(f"w{number}", f"c{number}")
        attempt = plan(goto(f"{site.url}/shop"), **recording("trace"), **allowed(site))
        await rig.browser.run(f"c{number}", attempt, rig.journal)
        await rig.browser.close_window(f"w{number}")
    files = [path for path in life.traces.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".trace", ".network")]
    assert len(files) < 10


class TestFindingAnEncoder:
    async def test_one_that_is_set_is_used_and_no_other(self, ffmpeg: str, tmp_path: Path) -> None:
        assert await find_ffmpeg(ffmpeg, {"PATH": "/nowhere"}) == ffmpeg
        assert await find_ffmpeg(str(tmp_path / "none"), os.environ) is None

    async def test_it_is_found_on_path_or_where_playwright_keeps_its_own(
        self, ffmpeg: str, tmp_path: Path
    ) -> None:
        env = {"PATH": str(Path(ffmpeg).parent)}
        assert await find_ffmpeg(None, env) == ffmpeg
        own = tmp_path / "ffmpeg-1013" / "ffmpeg-linux"
        own.parent.mkdir()
        own.symlink_to(ffmpeg)
        env = {"PATH": "/nowhere", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
        assert await find_ffmpeg(None, env) == str(own)
        env = {"PATH": "/nowhere", "HOME": str(tmp_path)}
        assert await find_ffmpeg(None, env) is None

    async def test_one_that_takes_long_to_answer_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow, asked = tmp_path / "ffmpeg", tmp_path / "asked"
        os.mkfifo(asked)
        slow.write_text(f"#!/bin/sh\nread go <{asked}\necho libvpx\n")
        slow.chmod(0o755)
        loop = asyncio.get_running_loop()
        running = loop.time
        async with asyncio.TaskGroup() as group:
            finding = group.create_task(find_ffmpeg(str(slow), os.environ))
            answer = await asyncio.to_thread(asked.open, "w")
            monkeypatch.setattr(loop, "time", lambda: running() + 10)
            for _ in range(3):
                await asyncio.sleep(0)
            answer.write("go\n")
            answer.close()
        assert finding.result() == str(slow)

    async def test_one_without_the_encoder_is_none(self, tmp_path: Path) -> None:
        poor = tmp_path / "ffmpeg"
        shutil.copy("/bin/true", poor)
        assert await find_ffmpeg(None, {"PATH": str(tmp_path), "HOME": str(tmp_path)}) is None
