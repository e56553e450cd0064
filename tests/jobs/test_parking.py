"""Who follows the farm hears of work that nobody can take, when it begins to wait and why."""

from collections.abc import Sequence
from pathlib import Path

from farm.core.census import PoolVerdict
from farm.jobs.parking import Parking
from farm.jobs.ports import Waiting
from farm.stores.ports.cluster_events import ClusterEvent
from tests.jobs.farm import NS, Agent, Farm, farm_on, living, until


def parked(farm: Farm, before: int) -> Sequence[ClusterEvent]:
    told = farm.events.read(NS, before, limit=100)
    assert told is not None
    return [event for event in told.events if event.kind == "dispatch_parked"]


async def test_what_is_parked_is_told_once_with_its_census_and_again_when_the_reason_changes(
    tmp_path: Path,
) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path) as farm:
        before = farm.events.last()
        job_id = await farm.submit(name="first")
        await until(lambda: parked(farm, before))
        await farm.passes(10)
        await agent.dial(farm)
        await agent.running()
        second = await farm.submit(name="second")
        await until(lambda: len(parked(farm, before)) == 2)
        nobody, full = parked(farm, before)
        assert (nobody.data["job_id"], nobody.data["verdict"]) == (job_id, "no_live_pollers")
        assert nobody.data["task_queue"] == "default"
        assert (full.data["job_id"], full.data["verdict"]) == (second, "pollers_at_capacity")
        assert full.data["census"]["at_capacity"] == 1
        await agent.end()


async def test_that_the_agents_of_another_would_do_is_no_news_where_it_has_the_same_jobs(
    tmp_path: Path,
) -> None:
    async with farm_on(tmp_path) as farm:
        start = farm.events.last()
        job = await farm.job(await farm.submit())
        await until(lambda: parked(farm, start))
        before = farm.events.last()
        parking = Parking(farm.events, shared=True)
        for pool in (PoolVerdict.POLLERS_LINKED_ELSEWHERE, PoolVerdict.POLLERS_AT_CAPACITY):
            parking.park(job, Waiting(reason=pool.value, pool=pool))
        told = [event.data["verdict"] for event in parked(farm, before)]
        assert told == ["pollers_at_capacity"]
