"""When an agent is given up, and that what it ran is then lost once and once only."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId
from farm.protocol import messages as wire
from farm.stores.memory import MemoryRegistry
from tests.jobs.farm import WINDOW_S, Agent, Farm, farm_on, living
from tests.patience import PATIENCE_S

A = ClientId("a")
CLOSED_S = WINDOW_S * 1.25
OPEN_S = WINDOW_S * 2.25


class Interrupted(MemoryRegistry):
    """Does something before it tells whether an assignment holds."""

    first: Callable[[], Awaitable[None]] | None = None

    async def holds(self, *args: Any) -> bool:
        if self.first is not None:
            await self.first()
        return await super().holds(*args)


@pytest.fixture
def registry() -> Interrupted:
    return Interrupted(store_epoch=1, presence_window_s=WINDOW_S)


@pytest.fixture
async def farm(tmp_path: Path, registry: Interrupted) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path, registry=registry) as farm:
        yield farm


@pytest.fixture
async def agent(farm: Farm) -> AsyncIterator[Agent]:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        yield agent


async def silent_for(farm: Farm, seconds: float) -> None:
    await farm.passes(seconds)
    await farm.dispatcher.agents.sweep_gone()


async def ends_of(farm: Farm, job_id: str) -> list[str]:
    events = await farm.ledger.events(job_id, after=0)
    return [event.type for event in events if event.type == "attempt_ended"]


async def test_a_busy_agent_whose_beats_are_late_lives_while_its_link_is_open(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    for _ in range(4):
        await silent_for(farm, OPEN_S)
        assert (await farm.job(job_id)).state is JobState.RUNNING
        await farm.registry.heard(A, agent.link, now=farm.now)
    await agent.end()
    assert (await farm.state(job_id, "succeeded")).attempts == 1


async def test_an_open_link_postpones_the_end_of_a_silent_agent_by_one_window_only(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await silent_for(farm, OPEN_S)
    assert (await farm.job(job_id)).state is JobState.RUNNING
    await silent_for(farm, 0.1)
    await farm.state(job_id, "queued")
    assert (await farm.registry.snapshot(now=farm.now)).clients == ()


async def test_a_silent_agent_whose_link_has_closed_is_given_up_after_a_window_and_a_quarter(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.hang_up()
    await silent_for(farm, CLOSED_S)
    assert (await farm.job(job_id)).state is JobState.RUNNING
    await silent_for(farm, 0.1)
    await farm.state(job_id, "queued")
    (attempt,) = await farm.attempts(job_id)
    assert attempt.state is AttemptState.LOST


async def test_a_link_that_closes_late_in_the_silence_ends_the_postponement(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await silent_for(farm, CLOSED_S + 1)
    assert (await farm.job(job_id)).state is JobState.RUNNING
    await agent.hang_up()
    await silent_for(farm, 0)
    await farm.state(job_id, "queued")


async def test_an_idle_agent_that_is_heard_of_outlives_ten_windows(
    farm: Farm, agent: Agent
) -> None:
    for _ in range(40):
        await silent_for(farm, WINDOW_S / 4)
        await farm.registry.heard(A, agent.link, now=farm.now)
    (client,) = (await farm.registry.snapshot(now=farm.now)).clients
    assert client.client_id == A


@pytest.mark.parametrize("when", ["before the check", "before it goes out", "after it went out"])
async def test_an_agent_removed_around_the_sending_of_a_run_loses_it_exactly_once(
    farm: Farm, agent: Agent, registry: Interrupted, when: str
) -> None:
    """What runs is tracked, checked, sent; and an agent is removed before what it runs is lost."""
    removed = asyncio.Event()

    async def gone() -> None:
        if not removed.is_set():
            removed.set()
            await farm.dispatcher.agents.is_gone(A, "it was removed")

    async def send(message: wire.ToAgent) -> None:
        is_run = isinstance(message, wire.Command) and isinstance(message.body, wire.RunPlan)
        if is_run and when == "before it goes out":
            await gone()
        agent._inbox.put_nowait(message)
        if is_run and when == "after it went out":
            await gone()

    await farm.node.attach(A, agent.link, send)
    if when == "before the check":
        registry.first = gone
    job_id = await farm.submit()
    async with asyncio.timeout(PATIENCE_S):
        await removed.wait()
    async with asyncio.timeout(PATIENCE_S):
        while not await ends_of(farm, job_id):
            await asyncio.sleep(0.002)
    job = await farm.state(job_id, "queued")
    assert (job.attempts, job.free_losses) == (0, 1)
    (attempt,) = await farm.attempts(job_id)
    assert attempt.state is AttemptState.LOST
    assert await ends_of(farm, job_id) == ["attempt_ended"]


async def test_a_sweep_and_the_end_of_the_link_together_lose_each_attempt_once(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await farm.passes(OPEN_S + 1)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(farm.dispatcher.agents.sweep_gone())
            group.create_task(agent.hang_up())
            group.create_task(farm.dispatcher.agents.is_gone(A, "its process has ended"))
    await farm.state(job_id, "queued")
    await farm.dispatcher.agents.sweep_gone()
    assert await ends_of(farm, job_id) == ["attempt_ended"]
