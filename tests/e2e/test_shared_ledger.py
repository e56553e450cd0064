"""`farm serve` several times over one Redis and one PostgreSQL: any of them may be killed."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from farm.protocol.resources import ClusterEventView
from farm.sdk import FarmClient
from farm.sdk.errors import FarmApiError
from tests.e2e.faults.house import SETTINGS, House
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.fleet import Fleet, fleet_over_one_ledger
from tests.e2e.processes import eventually
from tests.e2e.puppet import Puppet
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]

WINDOW_S = float(SETTINGS["FARM_LINK__WINDOW_S"])


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, postgres: Databases, redis_url: str
) -> Iterator[Fleet]:
    yield from fleet_over_one_ledger(tmp_path_factory.mktemp("fleet"), postgres)


@pytest.fixture
async def fleet(running: Fleet) -> Fleet:
    """All of them are there, whatever the test before has done."""
    await running.whole()
    return running


def a_job(name: str, **more: object) -> dict[str, object]:
    return job(name, {"goto": "https://example.com/"}, **more)


async def eventually_empty(*puppets: Puppet) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while any(puppet.runs or puppet.tabs for puppet in puppets):
            await asyncio.sleep(0.02)


async def items_of(client: FarmClient, job_id: str) -> list[object]:
    return [item async for item in client.items(job_id)]


async def test_what_one_accepts_runs_wherever_the_agents_are_and_anyone_tells_of_it(
    fleet: Fleet,
) -> None:
    one, two, _ = fleet.houses
    a = Puppet("told-a")
    async with a.at(two.url), one.client() as first, two.client() as second:
        await a.is_let_in()
        job_id = await submitted(first, a_job("of the first"))
        for client in (first, second):
            done = await rested(client, job_id)
            assert (done.state, [t.agent for t in done.history]) == ("succeeded", ["told-a"])
            assert await items_of(client, job_id) == [{"by": "told-a"}]
            kinds = [event.type async for event in client.events(job_id)]
            assert kinds[0] == "job_accepted"
            assert "attempt_ended" in kinds
        await eventually_empty(a)


async def test_a_run_goes_on_at_another_coordinator_when_its_own_is_killed(
    fleet: Fleet,
) -> None:
    one, two, _ = fleet.houses
    a = Puppet("moved-a", automatic=False, slots=2)
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(two.client())
        async with a.at(one.url), one.client() as first:
            await a.is_let_in()
            running = [await submitted(first, a_job(f"{n}")) for n in range(2)]
            await a.is_running(2)
            queued = await submitted(first, a_job("queued"))
            lapsed = len(fleet.said("coordinator.lapsed"))
            fleet.kill(0)
        await stack.enter_async_context(a.at(two.url))
        await fleet.says("coordinator.lapsed", lapsed)
        await a.finish()
        for job_id in running:
            done = await rested(second, job_id)
            assert (done.state, [t.state for t in done.history]) == ("succeeded", ["succeeded"])
            assert await items_of(second, job_id) == [{"by": "moved-a"}]
        await a.is_running()
        assert (await second.job(queued)).state == "running"
        await a.finish()
        assert (await rested(second, queued)).state == "succeeded"
        assert len(a.begun) == 3
        await eventually_empty(a)


async def test_what_a_killed_coordinator_ran_is_run_again_once_when_its_agent_has_gone_too(
    fleet: Fleet,
) -> None:
    one, two, three = fleet.houses
    a, b, c = Puppet("gone-a", automatic=False), Puppet("gone-b"), Puppet("gone-c")
    async with a.at(one.url), one.client() as first:
        await a.is_let_in()
        job_id = await submitted(first, a_job("running"))
        await a.is_running()
        fleet.kill(0)
    async with b.at(two.url), c.at(three.url), two.client() as second:
        done = await rested(second, job_id)
        assert [t.state for t in done.history] == ["lost", "succeeded"]
        assert len(b.begun + c.begun) == 1


async def test_an_agent_that_dies_with_its_coordinator_is_given_up_after_a_window_and_a_quarter(
    fleet: Fleet,
) -> None:
    """Nobody sees its link close; that its coordinator's lease has lapsed says so.

    One that falls silent with it on a link that stays open is there for a window longer.
    """
    one, two, _ = fleet.houses
    a, b = Puppet("silent-a"), Puppet("silent-b")
    async with two.client() as second, b.at(two.url):
        await b.is_let_in()
        told = second.cluster_events()
        await anext(told)
        async with a.at(one.url):
            await a.is_let_in()
            await two.present("silent-a")
            fleet.kill(0)
            b.silent = True
        died_at = asyncio.get_running_loop().time()
        await fleet.says("agent.gone", 0, client_id="silent-a")
        took_s = asyncio.get_running_loop().time() - died_at
        assert took_s > WINDOW_S * 0.8
        assert not fleet.said("agent.gone", client_id="silent-b")
        assert "silent-a" not in {agent.client_id for agent in await second.agents()}
        reasons: list[object] = []
        async with asyncio.timeout(PATIENCE_S):
            while not reasons:
                event = await anext(told)
                if isinstance(event, ClusterEventView) and event.kind == "agent_disconnected":
                    reasons.append(event.data["reason"])
        assert reasons == ["disconnect"]
    assert fleet.said("agent.left_behind", client_id="silent-a")


async def test_a_job_is_cancelled_at_another_coordinator(fleet: Fleet) -> None:
    one, two, _ = fleet.houses
    a = Puppet("stopping-a", automatic=False)
    async with a.at(one.url), one.client() as first, two.client() as second:
        await a.is_let_in()
        job_id = await submitted(first, a_job("to be cancelled"))
        await a.is_running()
        await second.cancel(job_id)
        await eventually(lambda: bool(a.cancelled))
        await a.stop()
        assert (await rested(second, job_id)).state == "cancelled"


async def test_a_job_is_paused_and_resumed_at_another_coordinator(fleet: Fleet) -> None:
    one, two, _ = fleet.houses
    a = Puppet("pausing-a", automatic=False, capabilities=("pause",))
    async with a.at(one.url), one.client() as first, two.client() as second:
        await a.is_let_in()
        job_id = await submitted(first, a_job("to be paused"))
        await a.is_running()
        await second.pause(job_id)
        with pytest.raises(FarmApiError, match="capability not supported"):
            await second.resume(job_id)
        assert [order.kind for order in a.interventions] == ["pause"]
        await a.finish()
        assert (await rested(second, job_id)).state == "succeeded"
        with pytest.raises(FarmApiError):
            await second.pause(job_id)


async def test_what_is_queued_at_one_is_begun_at_another_without_waiting_for_it_to_look(
    fleet: Fleet,
) -> None:
    one, two, _ = fleet.houses
    a = Puppet("waking-a")
    async with a.at(two.url), one.client() as first:
        await a.is_let_in()
        for n in range(8):
            job_id = await submitted(first, a_job(f"{n}"))
            seen = [event.type async for event in first.events(job_id)]
            assert seen.count("attempt_started") == 1


async def test_one_key_at_two_coordinators_is_one_job(fleet: Fleet) -> None:
    one, two, _ = fleet.houses
    async with one.client() as first, two.client() as second:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(submitted(client, a_job("once", idempotency_key="k")))
                for client in (first, second) * 3
            ]
        job_id, *others = {task.result() for task in asked}
        assert others == []
        await first.cancel(job_id)


async def test_a_coordinator_that_was_stopped_beyond_its_lease_writes_nothing_of_what_it_had(
    fleet: Fleet,
) -> None:
    one, two, _ = fleet.houses
    a = Puppet("frozen-a", automatic=False)
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(two.client())
        async with a.at(one.url), one.client() as first:
            await a.is_let_in()
            job_id = await submitted(first, a_job("running"))
            await a.is_running()
            lapsed = len(fleet.said("coordinator.lapsed"))
            fleet.process(0).send_signal(signal.SIGSTOP)
            # Left in the stopped one's socket, to be read when it goes on.
            await a.finish()
        await stack.enter_async_context(a.at(two.url))
        done = await rested(second, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 1)
        await fleet.says("coordinator.lapsed", lapsed)
        before = [event.seq async for event in second.events(job_id, follow=False)]
        begun = len(fleet.said("farm.begins_again"))
        fleet.process(0).send_signal(signal.SIGCONT)
        await fleet.says("farm.begins_again", begun)
        async with one.client() as first:
            await first.job(job_id)
            after = [event.seq async for event in first.events(job_id, follow=False)]
            assert after == before
            again = await submitted(first, a_job("again"))
            await a.is_running()
            await a.finish()
            assert (await rested(first, again)).state == "succeeded"
        assert len(a.begun) == 2


async def test_files_that_are_not_kept_together_are_refused_at_the_start(
    fleet: Fleet, tmp_path: Path
) -> None:
    other = House(root=tmp_path)
    other.settings = {**fleet.houses[0].settings, "FARM_ARTIFACTS__DIR": str(tmp_path / "files")}
    try:
        with pytest.raises(AssertionError, match="FARM_ARTIFACTS__DIR"):
            await other.serve()
    finally:
        other.close()
