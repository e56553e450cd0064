"""What one life of the farm leaves to the next."""

import asyncio
from pathlib import Path

import pytest

from farm.core.job_states import JobState
from farm.core.model import ClientId, LinkId
from farm.protocol import messages as wire
from tests.jobs.farm import WINDOW_S, Agent, farm_on, living, until
from tests.patience import PATIENCE_S


async def test_after_a_restart_a_run_goes_on_to_its_end(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent):
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        assert agent.told(wire.Command)[-1].body.kind == "run"
        # Nothing is renewed by the clock here: it is when the run is taken up.
        async with farm_on(tmp_path, renew_interval_s=100) as farm:
            await agent.dial(farm)
            async with asyncio.timeout(PATIENCE_S):
                while (await farm.held()).expires_at < farm.now + 200:
                    await asyncio.sleep(0.005)
            await farm.passes(100)
            await farm.registry.heard(ClientId("a"), agent.link, now=farm.now)
            assert await farm.manager.release_expired() == 0
            await farm.dispatcher.agents.sweep_gone()
            assert (await agent.tell(wire.Notice(code="c", detail="d"), first=2)).seq == 2
            await agent.end()
            job = await farm.state(job_id, "succeeded")
            assert job.attempts == 1


async def test_after_a_restart_an_unlisted_run_is_lost_when_nothing_of_it_can_be_left(
    tmp_path: Path,
) -> None:
    agent = Agent()
    async with living(agent):
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        async with farm_on(tmp_path) as farm:
            stranger = Agent(instance="another", slots=2)
            await stranger.dial(farm)
            await farm.dispatcher.agents.sweep_gone()
            assert (await farm.job(job_id)).state is JobState.RUNNING
            await farm.passes(WINDOW_S * 1.25 + 1)
            await farm.dispatcher.agents.sweep_gone()
            assert (await farm.job(job_id)).state is JobState.QUEUED
            await agent.dial(farm)
            await until(lambda: [m for m in agent.told(wire.Stored) if m.refused and m.done])


@pytest.mark.parametrize("token", [(9, 9), None])
async def test_after_a_restart_a_listing_that_is_not_the_farms_is_refused_and_not_forgotten(
    tmp_path: Path, token: tuple[int, int] | None
) -> None:
    agent, other = Agent(), Agent(client_id="b")
    async with living(agent, other):
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
        (entry,) = agent.listing()
        async with farm_on(tmp_path) as farm:
            if token is not None:
                wrong = wire.Token(store_epoch=token[0], counter=token[1])
                await agent.dial(farm, running=(entry.model_copy(update={"token": wrong}),))
                await until(lambda: agent.told(wire.Stored))
                assert agent.told(wire.Stored)[-1].refused
            else:
                await other.dial(farm, running=(entry,))
                await until(lambda: other.told(wire.Stored))
                assert other.told(wire.Stored)[-1].refused
            assert (await farm.job(job_id)).state is JobState.RUNNING
            await farm.passes(WINDOW_S * 2)
            await farm.dispatcher.agents.sweep_gone()
            assert (await farm.job(job_id)).state is JobState.QUEUED


async def test_after_a_restart_a_job_that_was_to_be_cancelled_is_cancelled(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent):
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            job_id = await farm.submit()
            await agent.start()
            await farm.jobs.cancel((await farm.job(job_id)).namespace, job_id)
        agent.heard.clear()
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            await until(lambda: agent.told(wire.Cancel))
            await agent.end("cancelled")
            await farm.state(job_id, "cancelled")


async def test_a_farm_that_ends_tells_no_agent_to_stop(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent):
        async with farm_on(tmp_path) as farm:
            await agent.dial(farm)
            await farm.submit()
            await agent.start()
            # Its link is still there when its tasks are cancelled, as when one of them breaks.
            farm.node._links.clear()
            inbox = agent._inbox

            async def send(message: wire.ToAgent) -> None:
                inbox.put_nowait(message)

            async def keep(client_id: ClientId, link: LinkId) -> None:
                return

            farm.node.detach = keep  # type: ignore[method-assign]
            await farm.node.attach(ClientId("a"), agent.link, send)
        await until(inbox.empty)
    kinds = [order.body.kind for order in agent.told(wire.Command)]
    assert "release" not in kinds


async def test_jobs_accepted_before_a_restart_are_run_after_it(tmp_path: Path) -> None:
    async with farm_on(tmp_path) as farm:
        jobs = [await farm.submit(name=f"{n}") for n in range(5)]
    agent = Agent(automatic=True)
    async with living(agent), farm_on(tmp_path) as farm:
        await agent.dial(farm)
        for job_id in jobs:
            await farm.state(job_id, "succeeded")
