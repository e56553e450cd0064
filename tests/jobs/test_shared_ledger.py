"""Coordinators over one ledger and one registry: what runs is looked after by one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from farm.core.job_states import AttemptState, JobState
from farm.core.model import Assignment, ClientId
from farm.protocol import messages as wire
from farm.stores.memory import MemoryRegistry
from tests.jobs.farm import NS, WINDOW_S, Agent, Farm, farm_on, living, until
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases

GONE_S = WINDOW_S * 1.25


class Cluster:
    """Coordinators that come and go."""

    def __init__(self, folder: Path, url: str, postgres: Databases) -> None:
        self._folder, self._url, self._server = folder, url, postgres.server
        self.registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)

    @asynccontextmanager
    async def of(self, *names: str) -> AsyncIterator[list[Farm]]:
        async with AsyncExitStack() as stack:
            farms = []
            for name in names:
                (self._folder / name).mkdir(exist_ok=True)
                one = farm_on(
                    self._folder / name, registry=self.registry, name=name, postgres=self._url
                )
                farms.append(await stack.enter_async_context(one))
            yield farms

    def sql(self, statement: str) -> str:
        return self._server.sql(statement, str(make_url(self._url).database))


@pytest.fixture
def cluster(tmp_path: Path, postgres: Databases) -> Cluster:
    return Cluster(tmp_path, postgres.new(), postgres)


async def held(farm: Farm) -> list[Assignment]:
    snapshot = await farm.registry.snapshot(now=farm.now)
    return [one for client in snapshot.clients for one in client.assignments.values()]


async def comes_true(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.005)


async def refused(agent: Agent) -> bool:
    return any(m.refused for m in agent.told(wire.Stored))


async def test_a_job_submitted_to_one_is_run_by_whoever_has_the_agent(cluster: Cluster) -> None:
    agent = Agent(automatic=True)
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(two)
        job_id = await one.submit()
        two.dispatcher.wake()
        await one.state(job_id, "succeeded")
        assert agent.opened == 1


async def test_two_that_dispatch_from_one_queue_begin_each_job_once(cluster: Cluster) -> None:
    agents = [Agent(client_id=f"{n}", slots=3, automatic=True) for n in range(2)]
    async with cluster.of("one", "two") as farms, living(*agents):
        for farm, agent in zip(farms, agents, strict=True):
            await agent.dial(farm)
        jobs = [await farms[n % 2].submit() for n in range(24)]
        for farm in farms:
            farm.dispatcher.wake()
        for job_id in jobs:
            await farms[0].state(job_id, "succeeded", within_s=30)
            assert len(await farms[0].attempts(job_id)) == 1
        await comes_true(lambda: nothing_held(farms[0]))


async def test_what_one_has_claimed_without_knowing_it_is_placed_by_another(
    cluster: Cluster,
) -> None:
    agent = Agent(automatic=True)
    async with cluster.of("one", "two") as (one, two), living(agent):
        assert one.shared is not None
        job_id = await one.submit()
        assert await one.shared.claim(job_id)  # the answer was lost, or could not be undone
        await agent.dial(two)

        async def placed() -> bool:
            await one.passes(6)
            await two.registry.heard(agent_id(agent), agent.link, now=one.now)
            two.now = one.now
            two.dispatcher.wake()
            return (await two.job(job_id)).state is JobState.SUCCEEDED

        await comes_true(placed)


async def nothing_held(farm: Farm) -> bool:
    return not await held(farm)


async def test_a_run_goes_on_at_the_coordinator_its_agent_dials_and_its_result_is_stored_once(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        (before,) = await held(one)
        await agent.dial(two)
        await until(lambda: two.live.of_job(job_id))
        await one.owning.look()
        await until(lambda: one.live.of_job(job_id) is None)
        assert [a.token for a in await held(two)] == [before.token]
        assert (await agent.tell(wire.Notice(code="c", detail="d"), first=2)).seq == 2
        await agent.end()
        job = await two.state(job_id, "succeeded")
        assert (job.attempts, len(await two.attempts(job_id))) == (1, 1)
        assert not await refused(agent)
        await comes_true(lambda: nothing_held(two))


async def test_the_end_of_a_run_that_the_former_owner_still_hears_is_not_written_by_it(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        run = await agent.running()
        await agent.dial(two)
        await until(lambda: two.live.of_job(job_id))
        agent.farm = one
        await agent.end(run=run)
        await until(lambda: one.live.of_job(job_id) is None)
        assert (await two.job(job_id)).state is JobState.RUNNING
        assert len(await held(two)) == 1
        agent.farm = two
        await agent.end(run=run)
        await two.state(job_id, "succeeded")


async def test_an_agent_that_comes_back_to_its_first_coordinator_goes_on_there(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        await agent.dial(two)
        assert (await agent.tell(wire.Notice(code="c", detail="d"), first=2)).seq == 2
        await agent.dial(one)
        for farm in (two, one):
            await farm.owning.look()
        await until(lambda: two.live.of_job(job_id) is None)
        live = one.live.of_job(job_id)
        assert live is not None
        assert live.stored == 2
        await agent.end()
        await one.state(job_id, "succeeded")
        assert len(await one.attempts(job_id)) == 1


async def test_who_asked_too_late_gives_an_attempt_back_to_where_its_agent_is(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        assert two.shared is not None
        await two.dispatcher.agents.comes(agent_id(agent), agent.listing())
        await one.owning.look()
        assert one.live.of_job(job_id) is not None
        await agent.end()
        await one.state(job_id, "succeeded")


async def test_a_result_is_stored_where_its_agent_is_though_another_has_asked_too_late(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        await two.dispatcher.agents.comes(agent_id(agent), agent.listing())
        await agent.end()
        job = await one.state(job_id, "succeeded")
        assert (job.attempts, len(await one.attempts(job_id))) == (1, 1)
        await comes_true(lambda: nothing_held(one))
        assert not agent.runs


async def test_an_agent_that_comes_back_before_its_run_is_let_go_goes_on_with_it(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        await agent.dial(two)
        live = one.live.of_job(job_id)
        assert live is not None
        live.move()
        await agent.dial(one)
        await two.owning.look()
        await until(lambda: two.live.of_job(job_id) is None)
        assert (await agent.tell(wire.Notice(code="c", detail="d"), first=2)).seq == 2
        await agent.end()
        await one.state(job_id, "succeeded")
        assert len(await one.attempts(job_id)) == 1


async def test_an_agent_whose_run_nobody_looks_after_is_asked_again_what_it_runs(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one") as (one,), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        live = one.live.of_job(job_id)
        assert live is not None
        live.move()
        await until(lambda: one.live.of_job(job_id) is None)
        await one.owning.look()
        await one.passes(GONE_S + 1)
        assert one.ended == []
        for _ in range(2):
            await one.owning.look()
        assert one.ended == [(agent_id(agent), agent.link)]
        await agent.dial(one)
        await agent.end()
        await one.state(job_id, "succeeded")
        assert len(await one.attempts(job_id)) == 1


async def test_an_agent_that_comes_on_two_links_has_its_run_looked_after_once(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with living(agent), cluster.of("two") as (two,):
        async with cluster.of("one") as (one,):
            await agent.dial(one)
            job_id = await one.submit()
            await agent.start()
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(agent.dial(two))
        await agent.end()
        await two.state(job_id, "succeeded")
        again = f"job {job_id} again"
        await until(lambda: all(task.get_name() != again for task in asyncio.all_tasks()))


def agent_id(agent: Agent) -> ClientId:
    return ClientId(agent.client_id)


async def test_what_a_coordinator_that_is_gone_ran_is_lost_once_when_its_agent_does_not_come(
    cluster: Cluster,
) -> None:
    agent, other = Agent(), Agent(client_id="b", automatic=True)
    async with living(agent, other), cluster.of("two", "three") as (two, three):
        async with cluster.of("one") as (one,):
            await agent.dial(one)
            job_id = await one.submit()
            await agent.start()
        for farm in (two, three):
            await farm.dispatcher.agents.sweep_gone()
        assert (await two.job(job_id)).state is JobState.RUNNING
        cluster.sql(f"UPDATE attempts SET orphaned_at = orphaned_at - {GONE_S + 1}")
        async with asyncio.TaskGroup() as group:
            for farm in (two, three) * 2:
                group.create_task(farm.dispatcher.agents.sweep_gone())
        job = await two.job(job_id)
        assert (job.state, job.attempts) == (JobState.QUEUED, 1)
        assert [a.state for a in await two.attempts(job_id)] == [AttemptState.LOST]
        await other.dial(three)
        for farm in (two, three):
            await farm.passes(60)
        await three.registry.heard(agent_id(other), other.link, now=three.now)
        three.dispatcher.wake()
        await three.state(job_id, "succeeded")
        await agent.dial(two)
        await comes_true(lambda: refused(agent))


async def test_what_an_agent_runs_of_a_coordinator_that_is_gone_goes_on_where_it_dials(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with living(agent), cluster.of("two") as (two,):
        async with cluster.of("one") as (one,):
            await agent.dial(one)
            job_id = await one.submit()
            await agent.start()
        await agent.dial(two)
        cluster.sql("UPDATE attempts SET orphaned_at = 0 WHERE orphaned_at IS NOT NULL")
        await two.dispatcher.agents.sweep_gone()
        await agent.end()
        job = await two.state(job_id, "succeeded")
        assert job.attempts == 1


async def test_what_an_agent_does_not_take_along_is_given_up_when_nothing_of_it_can_be_left(
    cluster: Cluster,
) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        await agent.dial(two, running=())
        await one.owning.look()
        assert (await one.job(job_id)).state is JobState.RUNNING
        for farm in (one, two):
            await farm.passes(GONE_S + 1)
        await one.owning.look()
        await one.state(job_id, "queued")


async def test_a_cancel_at_another_coordinator_stops_the_run(cluster: Cluster) -> None:
    agent = Agent()
    async with cluster.of("one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await two.submit()
        one.dispatcher.wake()
        await agent.start()
        job = await two.jobs.cancel(NS, job_id, by="somebody")
        assert job.state is JobState.CANCELLING
        await one.owning.look()
        await until(lambda: agent.told(wire.Cancel))
        await agent.end("cancelled")
        await two.state(job_id, "cancelled")


async def test_a_life_that_is_over_leaves_what_runs_to_the_next(cluster: Cluster) -> None:
    agent = Agent()
    async with cluster.of("one") as (one,), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        assert one.shared is not None
        await one.shared.begin_again()
        await one.owning.look()
        assert one.live.of_job(job_id) is not None  # its agent is here
        await agent.end()
        await one.state(job_id, "succeeded")
