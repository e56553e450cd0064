"""Our own pages, each trying to hang, crash, flood, fill, deceive or get out.

One farm with one agent of three slots takes them all. Whatever a page does, its job ends within a
stated bound by a stated reason, the next job on the agent is none the worse, the farm goes on
answering, and at the end nothing is left: no window, no process, no file.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from agent.clock import monotonic
from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.e2e.faults.house import House, agents_of, browser_of
from tests.e2e.faults.watching import once, rested, submitted
from tests.e2e.hostile.answering import ANSWERING
from tests.e2e.hostile.flooding import FLOODING
from tests.e2e.hostile.going import GOING
from tests.e2e.hostile.page import Hostile
from tests.e2e.hostile.site import Site, opened
from tests.e2e.hostile.stopping import STOPPING
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.asyncio(loop_scope="module"),
]

PAGES = (*STOPPING, *FLOODING, *GOING, *ANSWERING)
TIMEOUTS = {"job": "3s", "navigation": "1500ms", "step": "1s"}
ENDS_WITHIN_S = 3 + 13
"""The job's time, and what docs/hostile-pages.md allows to end the window."""
LEFT_BYTES = 20_000_000
"""A browser's own files: profile, caches, dictionaries."""
SLOTS = 3


@dataclass(slots=True, kw_only=True)
class Suite:
    """The farm, the pages, and the jobs that have been sent to them."""

    house: House
    site: Site
    client: FarmClient
    agent: psutil.Process
    processes: int
    browser: int
    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of each page its job and the innocent one after it."""

    async def send(self, page: Hostile) -> tuple[str, str]:
        steps = page.steps or (
            {"goto": {"url": f"SITE/page/{page.name}", "wait_until": "commit"}},
            {"wait": "300ms"},
            {"eval": {"script": "1 + 1", "effect": "none"}},
        )
        text = json.dumps(steps).replace("SITE", self.site.url).replace("RAW", self.site.raw)
        steps = json.loads(text.replace("TLS", self.site.tls))
        hostile = once(page.name, *steps, timeout=TIMEOUTS, effects="idempotent")
        innocent = once(
            f"after {page.name}",
            {"goto": f"{self.site.url}/page/plain"},
            {"extract": {"fields": {"h": {"selector": "h1", "required": True}}}},
        )
        return await submitted(self.client, hostile), await submitted(self.client, innocent)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def suite(
    tmp_path_factory: pytest.TempPathFactory, chromium_executable: str
) -> AsyncIterator[Suite]:
    """Sends what may run together at once, in the order of the pages."""
    root = tmp_path_factory.mktemp("hostile")
    house = House(root=root, settings={"AGENT_SLOTS": str(SLOTS), "FARM_LINK__WINDOW_S": "10"})
    try:
        async with opened(PAGES, certificate(root)) as site, house_of(house, site) as suite:
            for page in PAGES:
                if not page.heavy:
                    suite.sent[page.name] = await suite.send(page)
            yield suite
    finally:
        house.close()


class house_of:  # noqa: N801 - used as a context manager
    """A farm whose pages may reach the site, and no more."""

    def __init__(self, house: House, site: Site) -> None:
        self._house, self._site = house, site

    async def __aenter__(self) -> Suite:
        hosts = [
            url.rpartition("//")[2] for url in (self._site.url, self._site.raw, self._site.tls)
        ]
        farm = await self._house.up(*(word for host in hosts for word in ("--allow", host)))
        (agent,) = agents_of(farm)
        self._client = self._house.client()
        await self._client.__aenter__()
        return Suite(
            house=self._house,
            site=self._site,
            client=self._client,
            agent=agent,
            processes=len(self._house.chromium()),
            browser=browser_of(agent).pid,
        )

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__(None, None, None)


def certificate(folder: Path) -> Path:
    """A certificate that nobody has signed but itself, with its key."""
    key, file = folder / "key.pem", folder / "both.pem"
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
    subprocess.run([*making, "-keyout", key, "-out", file], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


@pytest.mark.parametrize(
    "hostile", [page for page in PAGES if not page.heavy], ids=lambda p: p.name
)
async def test_a_hostile_page_ends_by_a_stated_reason_and_harms_nobody(
    suite: Suite, hostile: Hostile
) -> None:
    await judged(suite, hostile, *suite.sent[hostile.name])
    # They run side by side with others, none of which may lose its browser.
    before, suite.browser = suite.browser, browser_of(suite.agent).pid
    assert suite.browser == before


@pytest.mark.parametrize("hostile", [page for page in PAGES if page.heavy], ids=lambda p: p.name)
async def test_a_page_that_wants_the_whole_machine_leaves_it_as_it_was(
    suite: Suite, hostile: Hostile
) -> None:
    await judged(suite, hostile, *await suite.send(hostile))


async def judged(suite: Suite, page: Hostile, job_id: str, innocent: str) -> None:
    done = await rested(suite.client, job_id, 120)
    reason = done.failure.reason if done.failure else done.state
    assert reason in page.ends, done.failure
    assert lasted_s(done) < ENDS_WITHIN_S
    if page.notice:
        assert page.notice in await notices(suite, job_id)
    after = await rested(suite.client, innocent, 120)
    assert after.state == "succeeded", after.failure
    began = monotonic()
    await suite.client.agents()
    assert monotonic() - began < 2


async def notices(suite: Suite, job_id: str) -> set[str]:
    return {
        str(event.data["code"])
        async for event in suite.client.events(job_id, follow=False)
        if event.type == "notice"
    }


def lasted_s(job: JobDetail) -> float:
    (attempt,) = job.history
    assert attempt.ended_at is not None
    return (attempt.ended_at - attempt.started_at).total_seconds()


async def test_after_all_of_them_there_is_no_window_no_process_and_no_file_too_many(
    suite: Suite,
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not all(window.prepared for window in await suite.client.windows()):
            await asyncio.sleep(0.05)
        # A clean window is kept ready, and the browser keeps a few processes of its own.
        while len(suite.house.chromium()) > suite.processes + 4:
            await asyncio.sleep(0.05)
    left = list(suite.house.temporary.iterdir())
    # The lock by which agents take turns to launch is one empty file, and stays.
    lives = [one for one in left if one.name != "tabfarm-launch.lock"]
    assert [life.name.startswith("tabfarm-life-") for life in lives] == [True], left
    assert sum(f.stat().st_size for f in lives[0].rglob("*") if f.is_file()) < LEFT_BYTES
    assert "Traceback" not in suite.house.log.read_text(), suite.house.said()
