"""A farm in a process, agents that dial it, and what HTTP and command line say of who waits."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults.house import House
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.processes import ROOT
from tests.e2e.puppet import Puppet
from tests.patience import PATIENCE_S


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(root=tmp_path)
    yield house
    house.close()


async def farm(house: House, *arguments: str) -> Any:
    """Run a command of the command line and return the JSON it writes."""
    at = ("--url", house.url, "--token", house.admin_token, "--json")
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "farm.cli", *arguments, *at, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await command.communicate()
    assert command.returncode == 0
    return json.loads(said)


async def why(house: House, job_id: str, verdict: str) -> Any:
    """Wait until this is the verdict; the command line and the list of what waits say the same."""
    async with house.client() as client, asyncio.timeout(PATIENCE_S):
        while (told := await client.why(job_id)).verdict is None or (
            told.verdict.verdict != verdict
        ):
            await asyncio.sleep(0.05)
        listed = [
            one.verdict
            for one in await client.unserved()
            if job_id in {waiting.id for waiting in one.jobs}
        ]
        assert listed == [verdict]
        waiting = (await client.job(job_id)).waiting
        assert waiting is not None
        assert waiting.reason == told.verdict.reason
    said = await farm(house, "jobs", "why", job_id)
    assert said["verdict"]["verdict"] == verdict
    assert said["verdict"]["remedy"]
    (unserved,) = [
        one
        for one in await farm(house, "pools", "--unserved")
        if job_id in {waiting["id"] for waiting in one["jobs"]}
    ]
    assert unserved["verdict"] == verdict
    return said


def a_job(name: str, **more: object) -> dict[str, Any]:
    return job(name, {"goto": "https://example.com/"}, **more)


async def test_a_job_that_waits_has_the_right_verdict_by_http_and_by_command_line(
    house: House,
) -> None:
    await house.serve()
    agent = Puppet("a", automatic=False, slots=1)
    async with house.client() as client:
        first = await submitted(client, a_job("first"))
        said = await why(house, first, "no_live_pollers")
        assert (said["agents"], said["position"]) == ([], 1)
        assert said["verdict"]["census"]["last_compatible_age_s"] is None
        async with agent.at(house.url):
            await agent.is_running()
            wrong = await submitted(client, a_job("wrong", queue="elsewhere"))
            said = await why(house, wrong, "no_live_pollers")
            assert [one["reason"] for one in said["agents"]] == ["other_queue"]
            second = await submitted(client, a_job("second"))
            said = await why(house, second, "pollers_at_capacity")
            assert said["verdict"]["census"]["at_capacity"] == 1
            assert [one["reason"] for one in said["agents"]] == ["at_capacity"]
            await agent.drain()
            said = await why(house, second, "pollers_draining")
            pools = {one["task_queue"]: one for one in await farm(house, "pools")}
            assert (pools["default"]["agents"], pools["default"]["draining"]) == (1, 1)
            assert (pools["default"]["slots_used"], pools["default"]["queued"]) == (1, 1)
            assert pools["elsewhere"]["agents"] == 0
            running = await farm(house, "jobs", "why", first)
            assert running["detail"] == "it runs on a"
            await agent.finish()
            await rested(client, first)
            await agent.drain(False)
            await agent.is_running()
            assert [one.jobs[0].id for one in await client.unserved()] == [wrong]
            await agent.finish()
            assert (await rested(client, second)).state == "succeeded"
        await client.cancel(wrong)
        assert await client.unserved() == ()
        assert (await client.why(second)).detail == "it has ended: succeeded"
        third = await submitted(client, a_job("third"))
        said = await why(house, third, "no_live_pollers")
        assert said["verdict"]["census"]["last_compatible_age_s"] >= 0
