"""A coordinator that is killed, and agents that are frozen."""

import os
import signal

import psutil
import pytest

from farm.protocol.failures import Reason
from tests.e2e.faults.house import House, agents_of, browser_of, free_port, living
from tests.e2e.faults.place import Place
from tests.e2e.faults.test_effects_once import order
from tests.e2e.faults.watching import happened, job, once, rested, submitted
from tests.e2e.processes import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_ALLOW = ("--allow", "127.0.0.1")


async def test_jobs_and_running_attempts_outlive_a_coordinator_that_is_killed(
    house: House, place: Place
) -> None:
    """The same agent, in the same epoch, goes on and takes the next jobs."""
    house.settings = {"FARM_LINK__WINDOW_S": "20"}
    port = free_port()
    coordinator = await house.serve(*_ALLOW, port=port)
    agent = await house.agent("lone")
    browser = browser_of(psutil.Process(agent.pid))
    place.hold("/held/page")
    held = job("held", {"goto": f"{place.url}/held/page"}, {"extract": {"fields": {"t": "h1"}}})
    quick = job("quick", {"goto": f"{place.url}/status/200"})
    async with house.client() as client:
        running = await submitted(client, held)
        queued = [await submitted(client, quick) for _ in range(3)]
        await place.asked("GET /held/page")
        coordinator.kill()
        coordinator.wait()
        await house.serve(*_ALLOW, port=port)
        await house.present("lone")
        assert (await client.job(running)).state == "running"
        place.let_go("/held/page")
        done = [await rested(client, job_id) for job_id in (running, *queued)]
        assert [one.state for one in done] == ["succeeded"] * 4
        assert [len(one.history) for one in done] == [1] * 4
        assert [item async for item in client.items(running)] == [{"t": "page"}]
    assert place.hits["GET /held/page"] == 1
    assert agent.poll() is None
    assert browser_of(psutil.Process(agent.pid)) == browser


async def test_an_agent_gives_up_what_it_runs_when_the_farm_stays_away(
    house: House, place: Place
) -> None:
    port = free_port()
    coordinator = await house.serve(*_ALLOW, port=port)
    agent = await house.agent("lone")
    place.hold("/held/page")
    async with house.client() as client:
        job_id = await submitted(client, job("held", {"goto": f"{place.url}/held/page"}))
        await place.asked("GET /held/page")
        coordinator.kill()
        coordinator.wait()
        await place.left("/held/page")
        place.let_go("/held/page")
        await house.serve(*_ALLOW, port=port)
        done = await rested(client, job_id)
        assert done.state == "succeeded", done.failure
        assert [attempt.state for attempt in done.history] == ["lost", "succeeded"]
    assert agent.poll() is None


async def test_a_lone_agent_that_is_killed_loses_its_attempt_and_nothing_else(
    house: House, place: Place
) -> None:
    await house.serve(*_ALLOW)
    agent = await house.agent("one")
    place.hold("/held/page")
    async with house.client() as client:
        job_id = await submitted(client, job("held", {"goto": f"{place.url}/held/page"}))
        await place.asked("GET /held/page")
        below = house.chromium()
        agent.kill()
        agent.wait()
        await happened(client, job_id, "agent_link_closed", 5)
        await eventually(lambda: living(below) == [], 5)
        lost = await happened(client, job_id, "attempt_ended", 1.25 * 3 + 5)
        assert lost.data["failure"]["reason"] == Reason.AGENT_LOST
        place.let_go("/held/page")
        await house.agent("two")
        done = await rested(client, job_id)
        assert done.state == "succeeded", done.failure
        assert [attempt.agent for attempt in done.history] == ["one", "two"]


async def test_a_farm_that_is_killed_takes_its_agents_along_and_keeps_its_jobs(
    house: House, place: Place
) -> None:
    farm = await house.up(*_ALLOW, agents=2)
    place.hold("/held/page")
    held = job("held", {"goto": f"{place.url}/held/page"})
    async with house.client() as client:
        ids = [await submitted(client, held) for _ in range(4)]
    await place.asked("GET /held/page", times=2)
    below = {*house.chromium(), *agents_of(farm)}
    assert len(below) > 4
    farm.kill()
    farm.wait()
    await eventually(lambda: living(below) == [], 5)
    place.let_go("/held/page")
    await house.up(*_ALLOW)
    async with house.client() as client:
        done = [await rested(client, job_id) for job_id in ids]
    assert [one.state for one in done] == ["succeeded"] * 4
    assert sorted(len(one.history) for one in done) == [1, 1, 2, 2]
    assert place.hits["GET /held/page"] == 6


async def test_a_frozen_agent_does_nothing_more_for_a_job_that_went_on_elsewhere(
    house: House, place: Place
) -> None:
    await house.serve(*_ALLOW)
    frozen = await house.agent("frozen")
    place.hold("/held/page")
    body = order(place.url)
    body["steps"].insert(0, {"goto": f"{place.url}/held/page"})
    async with house.client() as client:
        job_id = await submitted(client, body)
        await place.asked("GET /held/page")
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            lost = await happened(client, job_id, "attempt_ended", 1.25 * 3 + 5)
            assert lost.data["failure"]["reason"] == Reason.AGENT_LOST
            place.let_go("/held/page")
            await house.agent("other")
            done = await rested(client, job_id)
            assert done.state == "succeeded", done.failure
            assert [attempt.agent for attempt in done.history] == ["frozen", "other"]
            assert place.ordered == 1
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        await house.present("frozen")
        # Both slots do something, so the one that was frozen is free of its old page.
        place.hold("/held/both")
        both = [
            await submitted(client, once("both", {"goto": f"{place.url}/held/both"}))
            for _ in range(2)
        ]
        await place.asked("GET /held/both", times=2)
        place.let_go("/held/both")
        assert [(await rested(client, one)).state for one in both] == ["succeeded"] * 2
        assert len((await client.job(job_id)).history) == 2
    assert place.ordered == 1


async def test_the_page_of_a_frozen_agent_reaches_nothing_when_it_wakes(
    house: House, place: Place
) -> None:
    """Its answer has waited for it meanwhile; what its script does then was done elsewhere."""
    await house.serve(*_ALLOW)
    frozen = await house.agent("frozen")
    place.hold("/held/posts")
    steps = ({"goto": f"{place.url}/held/posts"}, {"wait_for": "#done"})
    async with house.client() as client:
        job_id = await submitted(client, job("posts", *steps))
        await place.asked("GET /held/posts")
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            await happened(client, job_id, "attempt_ended", 1.25 * 3 + 5)
            place.let_go("/held/posts")
            await house.agent("other")
            assert (await rested(client, job_id)).state == "succeeded"
            assert place.hits["POST /posted"] == 1
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        await house.present("frozen")
        place.hold("/held/both")
        both = [
            await submitted(client, once("both", {"goto": f"{place.url}/held/both"}))
            for _ in range(2)
        ]
        await place.asked("GET /held/both", times=2)
        place.let_go("/held/both")
        assert [(await rested(client, one)).state for one in both] == ["succeeded"] * 2
    assert place.hits["POST /posted"] == 1
