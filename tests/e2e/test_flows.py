"""A farm with an agent of flows beside one with a browser: the same records, and nothing lost."""

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psutil
import pytest

from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.e2e.conftest import RunningFarm, farm_up, until
from tests.e2e.processes import ROOT, family
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST = 3
ROWS = "<li><b>A</b></li><li><b>B</b></li>"
STATIC = f"<!doctype html><ul>{ROWS}</ul>"
SCRIPT = f"document.querySelector('ul').innerHTML = '{ROWS}'"
SCRIPTED = f"<!doctype html><ul></ul><script>{SCRIPT}</script>"


@dataclass
class Pages:
    """What the site has seen."""

    url: str = ""
    at_once: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    let_go: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def answer(self, path: str) -> str:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.asked.release()
        try:
            if path.startswith("/held"):
                self.let_go.wait(30)
            return SCRIPTED if path.startswith("/scripted") else STATIC
        finally:
            with self.lock:
                self.at_once -= 1


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    seen = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = seen.answer(self.path).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        seen.url = f"http://127.0.0.1:{server.server_port}"
        yield seen
        seen.let_go.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def mixed(
    tmp_path_factory: pytest.TempPathFactory, chromium_executable: str
) -> Iterator[RunningFarm]:
    """A farm with one agent of each kind."""
    limits = {"AGENT_MAX_FLOWS": str(MOST), "AGENT_SLOTS": "8"}
    with farm_up(tmp_path_factory.mktemp("mixed"), "--console", "1", **limits) as running:
        until(lambda: len(consoles(running)) == 1, lambda: "no console agent")
        yield running


def consoles(farm: RunningFarm) -> list[psutil.Process]:
    """Return the processes of agents of flows."""
    found = []
    for one in family(farm.pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # a browser's come and go meanwhile
            if one.environ().get("AGENT_TYPE") == "console":
                found.append(one)
    return found


async def rested(client: FarmClient, job_id: str) -> JobDetail:
    async with asyncio.timeout(60):
        while (job := await client.job(job_id)).state not in ("succeeded", "failed", "uncertain"):
            await asyncio.sleep(0.05)
    return job


async def submit(client: FarmClient, **job: Any) -> str:
    accepted = await client.submit(json.dumps(job).encode(), content_type="application/json")
    return accepted.id


async def done(client: FarmClient, **job: Any) -> tuple[JobDetail, list[Any]]:
    job_id = await submit(client, **job)
    ended = await rested(client, job_id)
    return ended, [item async for item in client.items(job_id)]


def listing(url: str, use: str, **more: Any) -> dict[str, Any]:
    extract = {"list": "li", "fields": {"b": "b", "u": {"value": "${page.url}"}}}
    return {"name": use, "browser": use, "steps": [{"goto": url}, {"extract": extract}], **more}


async def agents_have_come(client: FarmClient) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while sum(agent.present for agent in await client.agents()) < 2:
            await asyncio.sleep(0.05)


async def test_the_catalogue_of_the_shop_is_the_same_with_and_without_a_browser(
    mixed: RunningFarm, shop: str
) -> None:
    text = (ROOT / "examples" / "shop" / "catalogue.yaml").read_text()
    text = text[: text.index("  - screenshot")]
    viewport = "browser: {viewport: {width: 1280, height: 900}}"
    assert viewport in text
    found: dict[str, list[Any]] = {}
    async with mixed.client() as client:
        await agents_have_come(client)
        for use in ("none", "required", "auto"):
            body = text.replace(viewport, f"browser: {use}").encode()
            accepted = await client.submit(
                body, content_type="application/yaml", params={"base": shop}
            )
            job = await rested(client, accepted.id)
            assert job.state == "succeeded", job.failure
            assert len(job.history) == 1
            assert job.history[0].agent.startswith("agent" if use == "required" else "console")
            found[use] = [item async for item in client.items(job.id)]
    assert len(found["none"]) > 20
    assert json.dumps(found["none"]) == json.dumps(found["required"]) == json.dumps(found["auto"])


async def test_a_page_that_a_script_makes_is_read_in_a_tab_after_a_flow(
    mixed: RunningFarm, pages: Pages
) -> None:
    url = f"{pages.url}/scripted"
    async with mixed.client() as client:
        await agents_have_come(client)
        job, items = await done(client, **listing(url, "auto", retry={"max_attempts": 1}))
        assert (job.state, [item["b"] for item in items]) == ("succeeded", ["A", "B"])
        assert [attempt.state for attempt in job.history] == ["failed", "succeeded"]
        job, items = await done(client, **listing(url, "none", retry={"max_attempts": 1}))
        assert (job.state, items) == ("failed", [])
        assert job.failure is not None
        assert job.failure.reason == "selector_not_found"


async def test_however_many_jobs_there_are_no_more_flows_run_than_there_may_be(
    mixed: RunningFarm, pages: Pages
) -> None:
    async with mixed.client() as client:
        await agents_have_come(client)
        pages.most = 0
        jobs = [await submit(client, **listing(f"{pages.url}/{n}", "none")) for n in range(50)]
        ended = [await rested(client, job_id) for job_id in jobs]
        assert {job.state for job in ended} == {"succeeded"}
        flows = [w for w in await client.workers() if w.client_id.startswith("console")]
    assert pages.most <= MOST
    assert 0 < len(flows) <= MOST
    assert {flow.window_id for flow in flows} == {None}


async def test_a_killed_agent_of_flows_takes_its_attempts_along_and_nothing_else(
    mixed: RunningFarm, pages: Pages
) -> None:
    async with mixed.client() as client:
        await agents_have_come(client)
        while pages.asked.acquire(blocking=False):
            pass
        held = await submit(client, **listing(f"{pages.url}/held", "none"))
        assert await asyncio.to_thread(pages.asked.acquire, timeout=20)
        (victim,) = consoles(mixed)
        os.kill(victim.pid, signal.SIGKILL)
        pages.let_go.set()
        job = await rested(client, held)
    assert job.state == "succeeded"
    assert [attempt.state for attempt in job.history] == ["lost", "succeeded"]
