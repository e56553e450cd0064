"""Coordinators with ledgers of their own, and agents they share by one Redis."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import Assignment, ClientId
from farm.errors import StoreUnavailableError
from farm.manager.manager import Acquired
from farm.protocol import messages as wire
from farm.stores.redis import RedisRegistry
from tests.jobs.farm import NS, WINDOW_S, Agent, Farm, farm_on, living, until
from tests.patience import PATIENCE_S

GONE_S = WINDOW_S * 1.25
A = ClientId("a")
NewRegistry = Callable[[int], Awaitable[RedisRegistry]]


@pytest.fixture
async def registry(new_redis_registry: NewRegistry) -> RedisRegistry:
    return await new_redis_registry(1)


@asynccontextmanager
async def sharing(
    registry: RedisRegistry, directory: Path, *names: str
) -> AsyncIterator[list[Farm]]:
    """Run coordinators over one registry, each on a ledger of its own."""
    async with AsyncExitStack() as stack:
        farms = []
        for name in names:
            (directory / name).mkdir(exist_ok=True)
            one = farm_on(directory / name, registry=registry, name=name)
            farms.append(await stack.enter_async_context(one))
        yield farms


async def passes(seconds: float, *farms: Farm) -> None:
    for farm in farms:
        await farm.passes(seconds)


async def held(farm: Farm) -> list[Assignment]:
    snapshot = await farm.registry.snapshot(now=farm.now)
    return [one for client in snapshot.clients for one in client.assignments.values()]


async def test_a_job_runs_on_an_agent_of_its_own_coordinator_and_says_so_of_the_others(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent, other = Agent(client_id="a"), Agent(client_id="b", automatic=True)
    async with sharing(registry, tmp_path, "one", "two") as (one, two), living(agent, other):
        await agent.dial(two)
        job_id = await one.submit()
        assert await one.waits(job_id) == "linked_elsewhere"
        assert agent.opened == 0
        await other.dial(one)
        await one.state(job_id, "succeeded")
        assert [a.client_id for a in await one.attempts(job_id)] == ["b"]


async def test_a_caller_of_the_library_is_lent_the_agents_of_all(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent(client_id="a")
    async with sharing(registry, tmp_path, "one", "two") as (one, two), living(agent):
        await agent.dial(two)
        agent.tabs["T1"] = None
        await agent.report()
        outcome = await one.manager.try_acquire(NS, "t")
        assert isinstance(outcome, Acquired)
        assert await two.manager.acquire(NS, "t") is None


async def test_after_a_restart_over_redis_a_run_goes_on_under_its_own_assignment(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent()
    async with living(agent):
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
            (before,) = await held(farm)
        fresh = RedisRegistry(registry.redis, presence_window_s=WINDOW_S, shard=registry.shard)
        await fresh.open(store_epoch=2)
        async with sharing(fresh, tmp_path, "one") as (farm,):
            await farm.passes(5)
            await agent.dial(farm)
            await until(lambda: farm.live.of_job(job_id))
            async with asyncio.timeout(PATIENCE_S):
                while (now_held := await held(farm))[0].renewed_at < farm.now:
                    await asyncio.sleep(0.005)
            assert [one.token for one in now_held] == [before.token]
            assert not [m for m in agent.told(wire.Stored) if m.refused]
            assert (await agent.tell(wire.Notice(code="c", detail="d"), first=2)).seq == 2
            await agent.end()
            job = await farm.state(job_id, "succeeded")
            assert job.attempts == 1
            async with asyncio.timeout(PATIENCE_S):
                while await held(farm):
                    await asyncio.sleep(0.005)
        await fresh.close()


async def test_after_a_restart_over_redis_a_lost_run_holds_nothing_any_more(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent()
    async with living(agent):
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm, running=())
            await farm.passes(GONE_S + 1)
            await registry.heard(A, agent.link, now=farm.now)
            await farm.dispatcher.agents.sweep_gone()
            assert (await farm.attempts(job_id))[0].state is AttemptState.LOST
            assert await held(farm) == []


async def test_a_store_that_is_away_while_a_run_is_taken_up_loses_nothing(
    registry: RedisRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent()
    async with living(agent):
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        async with sharing(registry, tmp_path, "one") as (farm,):

            async def away(*_: object, **__: object) -> None:
                raise StoreUnavailableError("Redis is away")

            with monkeypatch.context() as patch:
                patch.setattr(registry, "renew", away)
                with pytest.raises(StoreUnavailableError):
                    await agent.dial(farm)
            await agent.dial(farm)
            await agent.end()
            assert (await farm.state(job_id, "succeeded")).attempts == 1


async def test_an_agent_that_runs_what_another_gave_it_is_kept_out_until_nothing_can_be_left(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent()
    async with sharing(registry, tmp_path, "one", "two") as (one, two), living(agent):
        await agent.dial(one)
        await one.submit()
        await agent.start()
        running = agent.listing()
        assert not await one.sharing.keeps_out(A, running)
        assert await two.sharing.keeps_out(A, running)
        assert not await two.sharing.keeps_out(A, ())
        await agent.hang_up()
        await passes(GONE_S, one, two)
        assert await two.sharing.keeps_out(A, running)
        await passes(0.1, one, two)
        assert not await two.sharing.keeps_out(A, running)


async def test_of_an_agent_that_redis_has_forgotten_it_is_not_known_that_nothing_is_left(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent()
    async with sharing(registry, tmp_path, "one", "two") as (one, two), living(agent):
        await agent.dial(one)
        await one.submit()
        await agent.start()
        running = agent.listing()
        await one.dispatcher.agents.is_gone(A, "as if Redis had forgotten it")
        assert await two.sharing.keeps_out(A, running)
        await two.passes(GONE_S + 0.1)
        assert not await two.sharing.keeps_out(A, running)


@pytest.mark.parametrize("removed", [False, True], ids=["moved", "given up"])
async def test_an_attempt_is_lost_when_another_coordinator_has_its_agent_or_has_given_it_up(
    registry: RedisRegistry, tmp_path: Path, removed: bool
) -> None:
    agent = Agent()
    async with sharing(registry, tmp_path, "one", "two") as (one, two), living(agent):
        await agent.dial(one)
        job_id = await one.submit()
        await agent.start()
        await one.sharing.lose_what_moved()
        assert (await one.job(job_id)).state is JobState.RUNNING
        await agent.hang_up()
        await passes(GONE_S + 0.1, one, two)
        if removed:
            await two.dispatcher.agents.sweep_gone()
        else:
            agent.runs.clear()
            agent.tabs.clear()
            await agent.dial(two)
        assert (await one.job(job_id)).state is JobState.RUNNING
        await one.sharing.lose_what_moved()
        await one.state(job_id, "queued")
        assert [a.state for a in await one.attempts(job_id)] == [AttemptState.LOST]


async def test_an_agent_that_comes_back_to_an_earlier_lifes_coordinator_has_not_moved(
    registry: RedisRegistry, tmp_path: Path
) -> None:
    agent = Agent()
    async with living(agent):
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        async with sharing(registry, tmp_path, "one") as (farm,):
            await agent.dial(farm)
            await until(lambda: farm.live.of_job(job_id))
            await farm.sharing.lose_what_moved()
            await agent.end()
            await farm.state(job_id, "succeeded")


async def test_what_an_attempt_held_is_given_back_when_its_store_is_there_again(
    registry: RedisRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent()
    async with sharing(registry, tmp_path, "one") as (farm,), living(agent):
        await agent.dial(farm)
        job_id = await farm.submit()
        await agent.running()
        asked = 0

        async def away(*_: object, **__: object) -> bool:
            nonlocal asked
            asked += 1
            raise StoreUnavailableError("Redis is away")

        with monkeypatch.context() as patch:
            patch.setattr("farm.jobs.attempts._STORE_PAUSE_S", 0.01)
            patch.setattr(registry, "release", away)
            await agent.end()
            await farm.state(job_id, "succeeded")
            await until(lambda: asked > 1)
        async with asyncio.timeout(PATIENCE_S):
            while await held(farm):
                await asyncio.sleep(0.005)
