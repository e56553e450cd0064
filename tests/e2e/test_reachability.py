"""Agents that are connected and do not answer: not chosen, given up by the rule, and taken back."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from farm.protocol.failures import Reason
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import place
from tests.e2e.faults.house import House
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import happened, job, ran, rested, submitted
from tests.e2e.processes import eventually
from tests.e2e.puppet import Puppet

__all__ = ["place"]

pytestmark = pytest.mark.slow

WINDOW_S = 3.0
WITHIN_S = 5.0
"""What a busy machine may take longer."""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(root=tmp_path, settings={"FARM_LOG_JSON": "1"})
    try:
        yield house
    finally:
        house.close()


@pytest.fixture
async def client(house: House) -> AsyncIterator[FarmClient]:
    await house.serve("--allow", "127.0.0.1")
    async with house.client() as client:
        yield client


async def waits_for(client: FarmClient, job_id: str, reason: str) -> None:
    async with asyncio.timeout(WINDOW_S + WITHIN_S):
        while (waiting := (await client.job(job_id)).waiting) is None or waiting.reason != reason:
            await asyncio.sleep(0.05)


def logged(house: House, event: str) -> list[str]:
    """The agents of which this was logged, in order."""
    lines = house.log.read_text().splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [str(one.get("client_id")) for one in found if one.get("event") == event]


BODY = job("a job", {"goto": "https://example.com/"})


async def test_an_agent_that_beats_and_does_not_answer_is_given_nothing_until_it_answers(
    house: House, client: FarmClient
) -> None:
    puppet = Puppet("deaf")
    async with puppet.at(house.url):
        await puppet.is_let_in()
        assert (await ran(client, BODY)).state == "succeeded"
        puppet.deaf = True
        await eventually(lambda: logged(house, "agent.unreachable") == ["deaf"], WINDOW_S * 2)
        job_id = await submitted(client, BODY)
        await waits_for(client, job_id, "unreachable")
        (agent,) = await client.agents()
        assert agent.present
        puppet.deaf = False
        assert (await rested(client, job_id, WITHIN_S)).state == "succeeded"
        assert puppet.welcomes == 1
    assert logged(house, "agent.gone") == []


async def test_a_silent_agent_on_an_open_socket_is_given_up_after_two_windows_and_a_quarter(
    house: House, client: FarmClient
) -> None:
    """And its socket is ended, so that it comes again when it has woken."""
    puppet = Puppet("silent", automatic=False)
    async with puppet.at(house.url):
        await puppet.is_let_in()
        job_id = await submitted(client, job("held", {"goto": "https://example.com/"}))
        await puppet.is_running()
        puppet.silent = True
        waiting = await submitted(client, BODY)
        # Not chosen after one window, and its run is not lost before the rule says so.
        async with asyncio.timeout(WINDOW_S + WITHIN_S):
            while any(agent.present for agent in await client.agents()):
                await asyncio.sleep(0.05)
        assert (await client.job(job_id)).state == "running"
        lost = await happened(client, job_id, "attempt_ended", 2.25 * WINDOW_S + WITHIN_S)
        assert lost.data["failure"]["reason"] == Reason.AGENT_LOST
        assert logged(house, "agent.gone") == ["silent"]
        puppet.runs.clear()
        puppet.tabs.clear()
        puppet.silent, puppet.automatic = False, True
        await eventually(lambda: puppet.welcomes >= 2, WITHIN_S * 2)
        assert (await rested(client, waiting)).state == "succeeded"
        done = await rested(client, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 2)


async def test_a_frozen_process_loses_its_work_and_is_proven_anew_when_it_goes_on(
    house: House, client: FarmClient, place: Place
) -> None:
    frozen = await house.agent("frozen", AGENT_TYPE="console")
    place.hold("/held/page")
    body = job("held", {"http": {"url": f"{place.url}/held/page"}}, browser="none")
    job_id = await submitted(client, body)
    await place.asked("GET /held/page")
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        lost = await happened(client, job_id, "attempt_ended", 2.25 * WINDOW_S + WITHIN_S)
        assert lost.data["failure"]["reason"] == Reason.AGENT_LOST
        assert not any(agent.present for agent in await client.agents())
        place.let_go("/held/page")
    finally:
        os.kill(frozen.pid, signal.SIGCONT)
    done = await rested(client, job_id)
    assert done.state == "succeeded", done.failure
    assert [attempt.agent for attempt in done.history] == ["frozen", "frozen"]
    assert logged(house, "agent.gone") == ["frozen"]
    assert logged(house, "agent.reachable").count("frozen") == 2
