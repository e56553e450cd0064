"""What nobody could take is tried again when something has changed, and not before."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from farm.core.model import ClientId, Instant, Namespace, Snapshot
from farm.core.tiers import NodePlacement, Pinned, Unplaced
from farm.stores.memory import MemoryRegistry
from tests.jobs.farm import WINDOW_S, Agent, Farm, farm_on, living, until

NOWHERE = {"metadata": {"region": "none"}}


class Read(MemoryRegistry):
    """Counts how often all there is was read."""

    readings = 0

    async def snapshot(self, *, now: Instant) -> Snapshot:
        self.readings += 1
        return await super().snapshot(now=now)


class Placed:
    says: NodePlacement = Unplaced()

    async def placement(self, namespace: Namespace) -> NodePlacement:
        return self.says


@pytest.fixture
def registry() -> Read:
    return Read(store_epoch=1, presence_window_s=WINDOW_S)


async def parked(farm: Farm, region: str) -> str:
    """Submit a job that nobody can take, of a kind of its own, and wait until it was tried."""
    job_id = await farm.submit(requires={"metadata": {"region": region}})
    assert await farm.waits(job_id) == "requirements_not_met"
    return job_id


async def test_jobs_that_come_to_a_fleet_where_others_wait_do_not_have_those_tried_again(
    tmp_path: Path, registry: Read
) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path, registry=registry) as farm:
        await agent.dial(farm)
        await parked(farm, "a")
        before = registry.readings
        for number, region in enumerate("bcdef", start=1):
            await parked(farm, region)
            assert registry.readings == before + number


async def test_once_something_has_changed_all_that_waits_is_tried_again(
    tmp_path: Path, registry: Read
) -> None:
    agent, eu = Agent(), Agent("b", metadata={"region": "eu"})
    async with living(agent, eu), farm_on(tmp_path, registry=registry) as farm:
        await agent.dial(farm)
        waits = await parked(farm, "eu")
        await parked(farm, "us")
        await eu.dial(farm)
        await farm.state(waits, "running")
        await eu.end()
        await farm.state(waits, "succeeded")


async def test_it_is_tried_again_after_a_while_though_nothing_was_told_to_have_changed(
    tmp_path: Path, registry: Read
) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path, registry=registry) as farm:
        await agent.dial(farm)
        await parked(farm, "a")
        before = registry.readings
        await farm.passes(5)
        await parked(farm, "b")
        assert registry.readings == before + 2


async def test_it_is_tried_again_where_the_rules_have_changed(
    tmp_path: Path, registry: Read
) -> None:
    placed = Placed()
    placed.says = Pinned(labels=frozenset({"n1"}))
    agent = Agent(automatic=True)
    async with living(agent), farm_on(tmp_path, registry=registry, placements=placed) as farm:
        await agent.dial(farm)
        job_id = await farm.submit()
        assert await farm.waits(job_id) == "other_node"
        placed.says = Unplaced()
        farm.manager.placement_changed("default")
        farm.dispatcher.look_anew()
        await farm.state(job_id, "succeeded")


def at_the_end_of_a_look(
    farm: Farm, happens: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have something happen once, when no other job is due beside those that were tried."""
    due, tried = farm.ledger.due, False

    async def due_and_then(**asked: Any) -> Any:
        nonlocal tried
        found = await due(**asked)
        if tried and not found.jobs:
            monkeypatch.setattr(farm.ledger, "due", due)
            await happens()
        tried = bool(found.jobs)
        return found

    monkeypatch.setattr(farm.ledger, "due", due_and_then)


async def test_a_job_that_is_submitted_between_a_look_and_the_wait_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(slots=2)
    submitted: list[str] = []
    async with living(agent), farm_on(tmp_path) as farm:

        async def submit() -> None:
            submitted.append(await farm.submit())

        await agent.dial(farm)
        at_the_end_of_a_look(farm, submit, monkeypatch)
        await farm.state(await farm.submit(), "running")
        await until(lambda: submitted)
        await farm.state(submitted[0], "running")


async def test_a_change_between_a_look_and_the_wait_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(automatic=True)
    async with living(agent), farm_on(tmp_path) as farm:
        await agent.dial(farm)
        await farm.registry.set_draining(ClientId("a"))
        at_the_end_of_a_look(
            farm, lambda: farm.registry.set_draining(ClientId("a"), False), monkeypatch
        )
        await farm.state(await farm.submit(), "succeeded")
