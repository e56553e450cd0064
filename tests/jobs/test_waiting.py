"""What is said of jobs that wait: the right verdict, for as long as they do."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.core.census import PoolVerdict
from farm.core.model import Capacity, ClientId, link_of
from farm.errors import InvalidInputError
from farm.jobs.readings import Readings
from farm.jobs.why import Explaining, Why
from farm.stores.ledger import SqlBacklog
from farm.stores.memory import MemoryRegistry
from tests.jobs.farm import NS, WINDOW_S, Agent, Farm, farm_on, living, until
from tests.patience import PATIENCE_S
from tests.stores.pool import hello, registered

V = PoolVerdict


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path) as farm:
        yield farm


@pytest.fixture
def explaining(farm: Farm) -> Explaining:
    return explaining_of(farm)


def explaining_of(farm: Farm, *, shared: bool = False) -> Explaining:
    queue = SqlBacklog(farm.database)
    return Explaining(
        registry=farm.registry,
        ledger=farm.ledger,
        queue=queue,
        readings=Readings(
            dispatcher=farm.dispatcher,
            queue=queue,
            explain=farm.manager.explain,
            clock=farm.clock,
            shared=shared,
        ),
        explain=farm.manager.explain,
        queues=farm.queues,
        clock=farm.clock,
    )


async def told(farm: Farm, explaining: Explaining, job_id: str, verdict: PoolVerdict) -> Why:
    """Wait until the dispatcher has this verdict on a job; a reading of its own says the same."""
    key = (await farm.job(job_id)).match_key

    def published() -> bool:
        waiting = farm.dispatcher.waiting(key)
        return waiting is not None and waiting.pool is verdict

    await until(published)
    why = await explaining.why(NS, job_id)
    assert why.waiting is not None
    assert why.waiting.pool is verdict
    (unserved,) = [u for u in await explaining.unserved(NS) if u.jobs.match_key == key]
    assert unserved.waiting.pool is verdict
    assert (await explaining.counts())[verdict] >= unserved.jobs.count
    return why


async def test_without_an_agent_with_a_wrong_queue_and_while_it_drains_each_has_its_verdict(
    farm: Farm, explaining: Explaining
) -> None:
    job_id = await farm.submit()
    await told(farm, explaining, job_id, V.NO_LIVE_POLLERS)
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        run = await agent.running()
        full = await farm.submit()
        why = await told(farm, explaining, full, V.POLLERS_AT_CAPACITY)
        assert why.agents == {"a": "at_capacity"}
        wrong = await farm.submit(queue="elsewhere")
        why = await told(farm, explaining, wrong, V.NO_LIVE_POLLERS)
        assert why.agents == {"a": "other_queue"}
        unfit = await farm.submit(requires={"metadata": {"region": "eu"}})
        await told(farm, explaining, unfit, V.POLLERS_INCOMPATIBLE)
        await farm.registry.set_draining(ClientId("a"))
        await told(farm, explaining, full, V.POLLERS_DRAINING)
        await farm.registry.set_draining(ClientId("a"), draining=False)
        await agent.end(run=run)


async def test_a_job_that_waits_for_a_slot_begins_at_its_release_whatever_the_backoff(
    farm: Farm, explaining: Explaining
) -> None:
    """No time passes here, and a failed attempt of this farm waits for four seconds."""
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        first = await farm.submit()
        run = await agent.running()
        second = await farm.submit()
        await told(farm, explaining, second, V.POLLERS_AT_CAPACITY)
        now = farm.now
        await agent.end(run=run)
        await farm.state(first, "succeeded")
        await farm.state(second, "running")
        assert farm.now == now
        assert await explaining.unserved(NS) == []
        why = await explaining.why(NS, second)
        assert (why.waiting, why.runs_on) == (None, "a")


async def test_of_two_jobs_that_wait_for_one_slot_one_begins_and_the_other_waits_on(
    farm: Farm, explaining: Explaining
) -> None:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        await farm.submit()
        run = await agent.running()
        second, third = await farm.submit(), await farm.submit()
        why = await told(farm, explaining, third, V.POLLERS_AT_CAPACITY)
        assert why.position == 2
        since = (await explaining.unserved(NS))[0].since
        farm.now = type(farm.now)(farm.now + 1)
        await agent.end(run=run)
        await farm.state(second, "running")
        why = await told(farm, explaining, third, V.POLLERS_AT_CAPACITY)
        assert why.position == 1
        assert [one.since for one in await explaining.unserved(NS)] == [since]


async def test_entries_go_when_jobs_are_cancelled_and_when_nothing_more_is_begun(
    farm: Farm, explaining: Explaining
) -> None:
    one, two = await farm.submit(), await farm.submit(queue="q")
    for job_id in (one, two):
        await told(farm, explaining, job_id, V.NO_LIVE_POLLERS)
    await farm.jobs.cancel(NS, one)
    (left,) = await explaining.unserved(NS)
    assert [job.job_id for job in left.jobs.jobs] == [two]
    farm.dispatcher.close_intake()
    assert farm.dispatcher.unserved() == {}
    assert await explaining.unserved(NS) == []


async def test_when_it_may_begin_is_said_where_its_own_kind_has_every_slot_and_else_not(
    farm: Farm, explaining: Explaining
) -> None:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        for _ in range(3):
            job_id = await farm.submit()
            run = await agent.running()
            await farm.state(job_id, "running")
            farm.now = type(farm.now)(farm.now + 5)
            await farm.registry.heard(ClientId("a"), agent.link, now=farm.now)
            await agent.end(run=run)
            await farm.state(job_id, "succeeded")
            await until(lambda: not agent.runs)
        await farm.submit()
        run = await agent.running()
        second, third = await farm.submit(), await farm.submit()
        why = await told(farm, explaining, third, V.POLLERS_AT_CAPACITY)
        assert why.begins_within_s == 10
        assert (await explaining.why(NS, second)).begins_within_s == 5
        other = await farm.submit(requires={"metadata": {"region": "eu"}})
        await told(farm, explaining, other, V.POLLERS_INCOMPATIBLE)
        assert (await explaining.why(NS, third)).begins_within_s is None
        await agent.end(run=run)


async def test_of_other_namespaces_nothing_is_told_to_who_waits(
    farm: Farm, explaining: Explaining
) -> None:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        body = b'{"name": "n", "steps": [{"goto": "https://example.com/"}]}'
        namespace = type(NS)("other")
        job, _ = await farm.jobs.submit(namespace, body, "application/json", {}, None)
        await until(lambda: farm.dispatcher.waiting(job.match_key) is not None)
        waiting = farm.dispatcher.waiting(job.match_key)
        assert waiting is not None
        assert (waiting.reason, waiting.pool) == ("no_agent", V.NO_LIVE_POLLERS)
        assert waiting.detail.startswith("no agent is in the pool default")
        assert "namespace" not in (waiting.remedy or "")
        assert (await explaining.why(namespace, job.job_id)).agents == {}
        assert [pool.clients for pool in await explaining.pools(namespace)] == [()]


async def test_a_job_whose_agent_had_no_room_after_all_says_so_until_it_is_offered_again(
    farm: Farm, explaining: Explaining
) -> None:
    agent = Agent(refuse_runs="busy")
    async with living(agent):
        await agent.dial(farm)
        job_id = await farm.submit()
        async with asyncio.timeout(PATIENCE_S):
            while not (await farm.job(job_id)).free_losses:
                await asyncio.sleep(0.005)
        why = await explaining.why(NS, job_id)
        assert why.waiting is not None
        assert why.waiting.pool is V.SATURATED
        assert (why.waiting.detail, why.position) == ("a was chosen and had no room", None)


async def test_a_job_of_a_queue_that_is_not_declared_is_refused_with_the_nearest_that_is(
    farm: Farm,
) -> None:
    await farm.submit(queue="chrom")  # nothing is declared yet
    await farm.deployments.declare(NS, "v1", ["default", "chrome"], now=farm.now)
    farm.queues.changed(NS)
    with pytest.raises(InvalidInputError) as refused:
        await farm.submit(queue="chrom")
    detail = "no task queue chrom is declared"
    problem = {"pointer": "/queue", "detail": detail, "nearest": "chrome"}
    assert refused.value.context["problems"] == (problem,)
    job_id = await farm.submit(queue="chrome")
    assert (await farm.job(job_id)).spec["queue"] == "chrome"


async def test_what_waits_in_a_queue_that_is_declared_no_more_is_told_so_with_what_is_near(
    farm: Farm, explaining: Explaining
) -> None:
    job_id = await farm.submit(queue="chrome")
    await told(farm, explaining, job_id, V.NO_LIVE_POLLERS)
    await farm.deployments.declare(NS, "v1", ["chromium"], now=farm.now)
    farm.queues.changed(NS)
    farm.dispatcher.look_anew()
    why = await told(farm, explaining, job_id, V.NO_QUEUE_DECLARATION)
    assert why.waiting is not None
    assert why.waiting.remedy == "No such task queue is declared: did you mean chromium?"
    assert why.waiting.detail == "the task queue chrome is not declared"
    pools = {pool.task_queue: pool.waiting for pool in await explaining.pools(NS)}
    assert pools["chrome"] is not None
    assert pools["chrome"].pool is V.NO_QUEUE_DECLARATION


async def test_where_others_begin_jobs_of_the_same_queue_their_agents_count_too(
    tmp_path: Path,
) -> None:
    registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)
    async with farm_on(tmp_path, registry=registry, name="one") as farm:
        full = hello(
            link=link_of("two", "link"), capacity=Capacity(max_concurrency=1), seen_at=farm.now
        )
        known = await registered(registry, full, now=farm.now)
        await registry.reserve_window(known.client_id, identity=None, now=farm.now)
        job_id = await farm.submit()
        key = (await farm.job(job_id)).match_key
        await until(lambda: farm.dispatcher.waiting(key) is not None)

        for shared, verdict in (
            (False, V.POLLERS_LINKED_ELSEWHERE),
            (True, V.POLLERS_AT_CAPACITY),
        ):
            why = await explaining_of(farm, shared=shared).why(NS, job_id)
            assert why.waiting is not None
            assert why.waiting.pool is verdict
            (unserved,) = await explaining_of(farm, shared=shared).unserved(NS)
            assert unserved.waiting.pool is verdict
