"""Jobs go where their namespace is placed, and are not changed by it."""

from pathlib import Path

import sqlalchemy as sa

from farm.core.model import Namespace
from farm.core.tiers import NodePlacement, Pinned, Prefer
from tests.jobs.farm import Agent, Farm, farm_on, living, until


class Placed:
    """Says where every namespace is placed."""

    def __init__(self, placement: NodePlacement) -> None:
        self.says = placement

    async def placement(self, namespace: Namespace) -> NodePlacement:
        return self.says


async def row(farm: Farm, job_id: str) -> tuple[object, ...]:
    """Return what is kept of what was submitted."""
    columns = "job_id, namespace, name, spec, body_hash, match_key"
    query = sa.text(f"SELECT {columns} FROM jobs WHERE job_id = :id")
    found = await farm.database.read(lambda c: c.execute(query, {"id": job_id}).one())
    return tuple(found)


async def test_a_job_runs_where_its_namespace_is_placed_and_its_row_is_as_it_was(
    tmp_path: Path,
) -> None:
    placed = Placed(Prefer(labels=frozenset({"n2"})))
    async with farm_on(tmp_path, placements=placed) as farm:
        other, preferred = Agent(client_id="a", node="n1"), Agent(client_id="z", node="n2")
        async with living(other), living(preferred):
            await other.dial(farm)
            await preferred.dial(farm)
            job_id = await farm.submit()
            before = await row(farm, job_id)
            await preferred.running()
            assert other.runs == {}
            await preferred.start()
            await preferred.end()
            job = await farm.state(job_id, "succeeded")
            assert job.spec["node"] is None
            assert await row(farm, job_id) == before


async def test_a_pinned_job_waits_beside_idle_agents_of_other_nodes(tmp_path: Path) -> None:
    placed = Placed(Pinned(labels=frozenset({"n2"})))
    async with farm_on(tmp_path, placements=placed) as farm:
        other, right = Agent(client_id="a", node="n1"), Agent(client_id="z", node="n2")
        async with living(other), living(right):
            await other.dial(farm)
            job_id = await farm.submit()
            await farm.comes_to_wait(job_id, "other_node")
            before = await row(farm, job_id)
            await right.dial(farm)
            await right.running()
            assert other.runs == {}
            assert await row(farm, job_id) == before
            await until(lambda: right.runs)
