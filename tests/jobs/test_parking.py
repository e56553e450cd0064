"""Who follows the farm hears of work that nobody can take, when it begins to wait and why."""

from collections.abc import Sequence
from pathlib import Path

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
