"""Real agents that are told to leave: what runs is finished, nothing new begins, no job is lost."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from farm.protocol.resources import ClusterEventView
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import place
from tests.e2e.faults.house import House
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import happened, job, rested, submitted
from tests.e2e.processes import ended, eventually, process
from tests.patience import PATIENCE_S

__all__ = ["place"]

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(root=tmp_path, settings={"AGENT_TYPE": "console", "AGENT_SLOTS": "2"})
    try:
        yield house
    finally:
        house.close()


@pytest.fixture
async def client(house: House) -> AsyncIterator[FarmClient]:
    await house.serve("--allow", "127.0.0.1")
    async with house.client() as client:
        yield client


def visits(place: Place, path: str) -> dict[str, object]:
    steps = ({"goto": f"{place.url}{path}"}, {"extract": {"fields": {"title": "h1"}}})
    return job(path, *steps, browser="none")


async def has_left(agent: "subprocess.Popen[bytes]", house: House) -> int:
    await eventually(lambda: agent.poll() is not None, 30)
    return agent.returncode


async def test_a_drained_agent_finishes_what_it_runs_begins_nothing_new_and_ends(
    house: House, client: FarmClient, place: Place
) -> None:
    place.hold("/held/first")
    old = await house.agent("old")
    first = await submitted(client, visits(place, "/held/first"))
    await place.asked("GET /held/first")
    assert (await client.drain_agent("old")).outcome == "draining"
    assert (await client.drain_agent("old")).outcome == "draining"
    second = await submitted(client, visits(place, "/held/second"))
    async with asyncio.timeout(PATIENCE_S):
        while (await client.job(second)).waiting is None:
            await asyncio.sleep(0.05)
    (shown,) = await client.agents()
    assert shown.draining
    assert shown.drain is not None
    assert place.hits["GET /held/second"] == 0
    place.let_go("/held/first")
    done = await rested(client, first)
    assert (done.state, done.item_count, [t.agent for t in done.history]) == (
        "succeeded",
        1,
        ["old"],
    )
    assert await has_left(old, house) == 0, house.said()
    assert place.hits["GET /held/second"] == 0
    assert (await client.job(second)).state == "queued"
    # Whoever starts agents again may start it under the same name: it is a fresh one.
    await house.agent("old")
    done = await rested(client, second)
    assert (done.state, [t.agent for t in done.history]) == ("succeeded", ["old"])


async def test_a_rolling_upgrade_is_one_command_and_loses_no_job(
    house: House, client: FarmClient, place: Place
) -> None:
    held = [f"/held/{n}" for n in range(4)]
    for path in held:
        place.hold(path)
    old = [await house.agent(f"old-{n}", AGENT_DEPLOYMENT="v1") for n in (1, 2)]
    running = [await submitted(client, visits(place, path)) for path in held]
    for path in held:
        await place.asked(f"GET {path}")
    await house.agent("new", AGENT_DEPLOYMENT="v2")
    command = ("farm.cli", "drain", "--deployment", "v1", "--wait")
    env = {"FARM_DATA_DIR": str(house.data_dir)}
    async with process(*command, cwd=house.root, env=env) as draining:
        async with asyncio.timeout(PATIENCE_S):
            while sum(agent.draining for agent in await client.agents()) < 2:
                await asyncio.sleep(0.05)
        later = [await submitted(client, visits(place, f"/held/later-{n}")) for n in range(6)]
        for job_id in later:
            done = await rested(client, job_id)
            assert (done.state, [t.agent for t in done.history]) == ("succeeded", ["new"])
        assert draining.returncode is None
        for path in held:
            place.let_go(path)
        code, out, err = await ended(draining, 30)
        assert code == 0, err
        assert out.count("draining") == 2
    for job_id in running:
        done = await rested(client, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 1)
    assert [await has_left(agent, house) for agent in old] == [0, 0], house.said()
    assert [agent.client_id for agent in await client.agents() if agent.present] == ["new"]


async def test_a_removed_agent_dials_again_and_goes_on_with_what_it_runs(
    house: House, client: FarmClient, place: Place
) -> None:
    place.hold("/held/first")
    agent = await house.agent("a")
    first = await submitted(client, visits(place, "/held/first"))
    await place.asked("GET /held/first")
    told = client.cluster_events()
    await anext(told)
    assert (await client.remove_agent("a")).outcome == "disconnected"
    kinds: list[tuple[str, object]] = []
    async with asyncio.timeout(PATIENCE_S):
        while ("agent_connected", None) not in kinds:
            event = await anext(told)
            assert isinstance(event, ClusterEventView)
            kinds.append((event.kind, event.data.get("reason")))
    assert kinds.count(("agent_disconnected", "disconnect")) == 1
    assert ("agent_disconnected", "deregistered") not in kinds
    await house.present("a")
    place.let_go("/held/first")
    done = await rested(client, first)
    assert (done.state, len(done.history)) == ("succeeded", 1)
    assert agent.poll() is None


async def test_a_drained_job_that_does_not_end_in_time_is_done_elsewhere(
    house: House, client: FarmClient, place: Place
) -> None:
    place.hold("/held/first")
    old = await house.agent("old")
    first = await submitted(client, visits(place, "/held/first"))
    await place.asked("GET /held/first")
    assert (await client.drain_agent("old", deadline_s=0)).outcome == "draining"
    assert await has_left(old, house) == 0, house.said()
    await happened(client, first, "attempt_ended")
    await house.agent("new")
    place.let_go("/held/first")
    done = await rested(client, first)
    assert (done.state, [t.agent for t in done.history]) == ("succeeded", ["old", "new"])
