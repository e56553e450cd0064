"""Agents that come when they are needed and go when they are told, and farms that end."""

import asyncio
import json
import signal

import pytest

from farm.cli.exits import ExitCode
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import Tough
from tests.e2e.faults.house import House, agents_of, living
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import happened, job, rested, submitted, works
from tests.e2e.processes import eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_EU = {"requires": {"metadata": {"region": "eu"}}}


async def draining(client: FarmClient, client_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any(a.draining for a in await client.agents() if a.client_id == client_id):
            await asyncio.sleep(0.05)


async def test_a_job_waits_for_an_agent_that_is_as_it_requires_and_says_so(
    tough: Tough, house: House, client: FarmClient, place: Place
) -> None:
    """And the agent, told to stop, first finishes the job it has, and takes no other."""
    place.hold("/held/page")
    held = job("european", {"goto": f"{place.url}/held/page"}, **_EU)
    first, second = await submitted(client, held), await submitted(client, held)
    await works(client, place.url)
    waiting = (await client.job(first)).waiting
    assert waiting is not None
    assert waiting.reason == "requirements_not_met"
    assert waiting.remedy
    agent = await house.agent("european", of=tough.house, AGENT_METADATA="region=eu")
    await place.asked("GET /held/page")
    browsers = house.chromium()
    assert browsers
    agent.send_signal(signal.SIGTERM)
    await draining(client, "european")
    place.let_go("/held/page")
    done = await rested(client, first)
    assert done.state == "succeeded", done.failure
    assert [attempt.agent for attempt in done.history] == ["european"]
    await eventually(lambda: agent.poll() is not None, 10)
    assert agent.returncode == 0
    assert living(browsers) == []
    left = await client.job(second)
    assert (left.state, left.history) == ("queued", ())
    await client.cancel(second)


async def test_an_agent_that_is_told_to_stop_gives_up_what_does_not_end_in_time(
    tough: Tough, house: House, client: FarmClient, place: Place
) -> None:
    place.hold("/held/page")
    held = job("european", {"goto": f"{place.url}/held/page"}, **_EU)
    settings = {"AGENT_METADATA": "region=eu", "AGENT_DRAIN_S": "0.5"}
    agent = await house.agent("hasty", of=tough.house, **settings)
    job_id = await submitted(client, held)
    await place.asked("GET /held/page")
    agent.send_signal(signal.SIGTERM)
    ended = await happened(client, job_id, "attempt_ended", 10)
    assert ended.data["failure"]["reason"] == "drained"
    await eventually(lambda: agent.poll() is not None, 10)
    assert agent.returncode == 0
    assert house.chromium() == set()
    assert (await client.job(job_id)).state == "queued"
    await client.cancel(job_id)


async def test_ctrl_c_ends_a_farm_within_ten_seconds_though_its_page_hangs(
    house: House, place: Place
) -> None:
    farm = await house.up("--allow", "127.0.0.1")
    hang = {"goto": {"url": f"{place.url}/hang", "wait_until": "commit"}}
    async with house.client() as client:
        body = job("hangs", hang, {"wait_for": "#never"}, timeout={"step": "5m"})
        job_id = await submitted(client, body)
        await happened(client, job_id, "step_ended")
        below = {*house.chromium(), *agents_of(farm)}
    farm.send_signal(signal.SIGINT)
    await eventually(lambda: farm.poll() is not None, 10)
    assert farm.returncode == ExitCode.SUCCEEDED, house.said()
    assert living({*below, *house.chromium()}) == []


async def test_ctrl_c_of_farm_run_keeps_what_was_there_and_leaves_no_process(
    house: House, place: Place
) -> None:
    place.hold("/held/page")
    file, folder = house.root / "job.json", house.root / "out"
    steps = (
        {"goto": f"{place.url}/products"},
        {"extract": {"list": ".product", "fields": {"title": "a"}}},
        {"screenshot": "seen.png"},
        {"goto": f"{place.url}/held/page"},
    )
    file.write_text(json.dumps(job("kept", *steps)))
    run = house.start("farm.cli", "run", str(file), "-o", str(folder), env={})
    await place.asked("GET /held/page")
    below = {*house.chromium(), *agents_of(run)}
    assert below
    run.send_signal(signal.SIGINT)
    await eventually(lambda: run.poll() is not None, 10)
    assert run.returncode == ExitCode.INTERRUPTED, house.said()
    assert len((folder / "items.jsonl").read_text().splitlines()) > 1
    assert (folder / "artifacts" / "seen.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "job.json").read_text())["state"] == "cancelled"
    assert living({*below, *house.chromium()}) == []
