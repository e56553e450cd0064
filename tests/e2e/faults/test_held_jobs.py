"""A job that people hold, when what it hangs on is killed, drained, or wanted by others."""

import asyncio
import signal

import pytest

from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.e2e.faults.house import House, agents_of, browser_of, free_port
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import job, once, ran, rested, submitted
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]


async def controlled(
    client: FarmClient, job_id: str, state: str | None, within_s: float = 30.0
) -> JobDetail:
    """Wait until somebody has control, or automation again."""
    async with asyncio.timeout(within_s):
        while True:
            found = await client.job(job_id)
            if (None if found.control is None else found.control.state) == state:
                return found
            await asyncio.sleep(0.05)


def asking(place: Place, name: str, **more: object) -> dict[str, object]:
    """A job that asks for a person on its first attempt."""
    steps = ({"goto": f"{place.url}/"}, {"human": {"message": "look", "timeout": "5m"}})
    return job(name, *steps, **{"timeout": {"job": "3s"}, **more})


async def test_a_paused_job_whose_agent_is_killed_waits_paused_for_another(
    house: House, place: Place
) -> None:
    farm = await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        steps = ({"goto": f"{place.url}/held/a"}, {"wait": 10})
        place.hold("/held/a")
        job_id = await submitted(client, job("paused", *steps))
        await place.asked("GET /held/a")
        await client.pause(job_id, by="anna")
        place.let_go("/held/a")
        await controlled(client, job_id, "paused")
        (agent,) = agents_of(farm)
        agent.kill()
        async with asyncio.timeout(PATIENCE_S):
            while (found := await client.job(job_id)).state != "queued":
                await asyncio.sleep(0.05)
        assert found.control is not None
        assert (found.control.state, found.control.by) == ("paused", "anna")
        other = await ran(client, once("other", {"goto": f"{place.url}/"}))
        assert other.state == "succeeded"
        assert (await client.job(job_id)).state == "queued"
        assert (await client.resume(job_id, by="bert")).outcome == "applied"
        done = await rested(client, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 2), done.failure


async def test_what_a_person_had_in_hand_is_gone_with_its_browser_and_the_job_asks_again(
    house: House, place: Place
) -> None:
    farm = await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        job_id = await submitted(client, asking(place, "asks"))
        await controlled(client, job_id, "human")
        await client.take_over(job_id, by="anna")
        (agent,) = agents_of(farm)
        browser_of(agent).kill()
        async with asyncio.timeout(PATIENCE_S):
            while len((found := await client.job(job_id)).history) < 2:
                await asyncio.sleep(0.05)
        found = await controlled(client, job_id, "human")
        assert found.control is not None
        assert (found.control.by, found.control.asked) == ("", "look")
        await client.hand_back(job_id, by="anna")
        assert (await rested(client, job_id)).state == "succeeded"


async def test_a_held_job_outlives_the_coordinator_and_its_own_time(
    house: House, place: Place
) -> None:
    house.settings = {"FARM_LINK__WINDOW_S": "15"}
    port = free_port()
    farm = await house.serve("--allow", "127.0.0.1", port=port)
    await house.agent("one")
    async with house.client() as client:
        job_id = await submitted(client, asking(place, "asks"))
        await controlled(client, job_id, "human")
        await client.take_over(job_id, by="anna")
        farm.kill()
        farm.wait()
    farm = await house.serve("--allow", "127.0.0.1", port=port)
    await house.present("one")
    async with house.client() as client:
        found = await client.job(job_id)
        assert found.state == "running"
        assert found.control is not None
        assert (found.control.state, found.control.by) == ("human", "anna")
        async with asyncio.timeout(PATIENCE_S):
            while (await client.hand_back(job_id, by="anna")).outcome != "applied":
                await asyncio.sleep(0.1)  # its agent has not said yet that it still runs it
        ended = await rested(client, job_id)
        assert (ended.state, len(ended.history)) == ("succeeded", 1), ended.failure


async def test_a_held_job_can_be_cancelled_and_a_draining_agent_ends_it(
    house: House, place: Place
) -> None:
    await house.serve("--allow", "127.0.0.1")
    agent = await house.agent("one", AGENT_DRAIN_S="2")
    async with house.client() as client:
        job_id = await submitted(client, asking(place, "asks", record=["trace", "network"]))
        await controlled(client, job_id, "human")
        await client.cancel(job_id)
        done = await rested(client, job_id, 20)
        assert (done.state, done.control) == ("cancelled", None)
        assert {a.state for a in await client.artifacts(job_id)} == {"ready"}
        job_id = await submitted(client, asking(place, "asks"))
        await controlled(client, job_id, "human")
        agent.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            while (found := await client.job(job_id)).state != "queued":
                await asyncio.sleep(0.05)
        assert found.control is None
        assert agent.wait(20) == 0
        await house.agent("two")
        await controlled(client, job_id, "human")
        await client.hand_back(job_id)
        assert (await rested(client, job_id)).state == "succeeded"


async def test_a_job_that_is_paused_has_its_identity_for_as_long_as_it_has_its_page(
    house: House, place: Place
) -> None:
    house.settings = {"AGENT_SLOTS": "2"}
    farm = await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        await client.put_identity("only", {})
        mine = {"identity": {"name": "only"}}
        place.hold("/held/a")
        job_id = await submitted(client, job("first", {"goto": f"{place.url}/held/a"}, **mine))
        await place.asked("GET /held/a")
        await client.pause(job_id, by="anna")
        await controlled(client, job_id, "pausing")
        second = await submitted(client, once("second", {"goto": f"{place.url}/"}, **mine))
        async with asyncio.timeout(PATIENCE_S):
            while (waiting := (await client.job(second)).waiting) is None:
                await asyncio.sleep(0.05)
        assert waiting.reason == "identity_in_use"
        (agent,) = agents_of(farm)
        agent.kill()
        place.let_go("/held/a")
        assert (await rested(client, second)).state == "succeeded"
        found = await client.job(job_id)
        assert found.control is not None
        assert (found.state, found.control.state) == ("queued", "paused")
        await client.resume(job_id)
        done = await rested(client, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 2), done.failure


async def test_a_browser_that_is_to_be_replaced_waits_for_who_has_a_tab_in_hand(
    house: House, place: Place
) -> None:
    house.settings = {"AGENT_RECYCLE_BROWSER_USES": "1", "AGENT_RECYCLE_PATIENCE_S": "0"}
    farm = await house.up("--allow", "127.0.0.1")
    (agent,) = agents_of(farm)
    async with house.client() as client:
        before = browser_of(agent)
        job_id = await submitted(client, asking(place, "asks"))
        await controlled(client, job_id, "human")
        other = await submitted(client, once("other", {"goto": f"{place.url}/"}))
        async with asyncio.timeout(PATIENCE_S):
            while not any(one.draining for one in await client.agents()):
                await asyncio.sleep(0.05)
        assert (await client.take_over(job_id, by="anna")).outcome == "applied"
        assert browser_of(agent) == before
        await client.hand_back(job_id, by="anna")
        done = await rested(client, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 1), done.failure
        assert (await rested(client, other)).state == "succeeded"
