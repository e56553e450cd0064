"""A farm that is told to stop parks what waits and what runs; its next life runs each once more."""

from pathlib import Path

from farm.protocol import messages as wire
from farm.protocol.failures import Reason
from tests.jobs.farm import Agent, farm_on, living


def runs(agent: Agent) -> int:
    return sum(isinstance(order.body, wire.RunPlan) for order in agent.told(wire.Command))


async def test_a_stopping_farm_parks_what_waits_and_what_runs_and_its_next_life_runs_it(
    tmp_path: Path,
) -> None:
    first_life = Agent()
    async with living(first_life), farm_on(tmp_path) as farm:
        await first_life.dial(farm)
        running = await farm.submit(name="running")
        await first_life.running()
        waiting = await farm.submit(name="waiting")
        await farm.passes(1)
        farm.dispatcher.close_intake()
        await first_life.end("failed", Reason.DRAINED)
        await farm.state(running, "queued")
        await farm.passes(100)
        assert (await farm.job(waiting)).state == "queued"
        assert runs(first_life) == 1
    second_life = Agent(automatic=True)
    async with living(second_life), farm_on(tmp_path) as farm:
        await second_life.dial(farm)
        for job_id, attempts in ((running, 2), (waiting, 1)):
            await farm.state(job_id, "succeeded")
            record = await farm.ledger.record_of(
                (await farm.job(job_id)).namespace, job_id, events=0
            )
            assert len(record.attempts) == attempts
    assert runs(second_life) == 2
