"""A namespace with much to do and one with little, on the same agents."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from farm.core.model import Namespace
from farm.protocol import messages as wire
from tests.jobs.farm import Agent, Farm, farm_on, living

NOISY, QUIET = Namespace("noisy"), Namespace("quiet")
KINDS = [{"metadata": {str(kind): True}} for kind in range(7)]


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path) as farm:
        yield farm


def in_order_of_start(agent: Agent) -> list[str]:
    """The names of the jobs an agent was given, in this order."""
    runs = [m.body.plan for m in agent.told(wire.Command) if isinstance(m.body, wire.RunPlan)]
    return [plan.name for plan in runs]


@pytest.mark.parametrize("slots", [1, 3])
async def test_a_quiet_namespace_gets_a_slot_at_every_turn_beside_a_bursty_one_with_many_kinds(
    farm: Farm, slots: int
) -> None:
    agent = Agent(automatic=True, namespaces=(NOISY, QUIET), slots=slots)
    agent.metadata = {str(kind): True for kind in range(7)}
    for number in range(40):
        # Of kinds that differ, so that nothing depends on the noisy ones being one line.
        await farm.submit(namespace=NOISY, name="noisy", requires=KINDS[number % 7])
    quiet = [await farm.submit(namespace=QUIET, name="quiet") for _ in range(8)]
    async with living(agent):
        await agent.dial(farm)
        for job_id in quiet:
            await farm.state(job_id, "succeeded", namespace=QUIET, within_s=30)
    begun = in_order_of_start(agent)
    places = [place for place, name in enumerate(begun) if name == "quiet"]
    # Several slots are filled at once, and so may be begun in another order than they were given.
    assert max(after - before - 1 for before, after in pairwise(places)) <= max(1, slots - 1)
    assert places[0] <= slots


async def test_what_one_namespace_can_not_have_holds_up_no_other(farm: Farm) -> None:
    agent = Agent(automatic=True, namespaces=(NOISY, QUIET))
    for _ in range(20):
        await farm.submit(namespace=NOISY, requires={"metadata": {"region": "eu"}})
    quiet = [await farm.submit(namespace=QUIET) for _ in range(3)]
    async with living(agent):
        await agent.dial(farm)
        for job_id in quiet:
            await farm.state(job_id, "succeeded", namespace=QUIET)
