"""Who holds an attempt is known until it ends, however it ends, and no longer."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from farm.core.model import ClientId
from farm.jobs.interventions import Wanted
from farm.jobs.watching import Watch
from farm.protocol import messages as wire
from tests.jobs.farm import NS, Agent, Farm, farm_on, living, until

PAUSE = Wanted(kind="pause", by="anna")
A = ClientId("a")
End = Callable[[Farm, Agent, str], Awaitable[Any]]


async def succeeds(_farm: Farm, agent: Agent, _job_id: str) -> None:
    await agent.end()


async def fails(_farm: Farm, agent: Agent, _job_id: str) -> None:
    await agent.end("failed")


async def is_lost(farm: Farm, _agent: Agent, _job_id: str) -> None:
    await farm.dispatcher.agents.is_gone(A, "its process has ended")


async def is_cancelled(farm: Farm, agent: Agent, job_id: str) -> None:
    await farm.jobs.cancel(NS, job_id, by="anna")
    await until(lambda: agent.told(wire.Cancel))
    await agent.end("cancelled")


@pytest.mark.parametrize("end", [succeeds, fails, is_lost, is_cancelled])
async def test_when_an_attempt_ends_nobody_holds_it_and_that_is_no_error(
    tmp_path: Path, end: End
) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path) as farm:
        farm.interventions.advertised(A, ("pause",))
        await agent.dial(farm)
        job_id = await farm.submit(retry={"max_attempts": 1})
        await agent.running()
        assert farm.live.of_job(job_id) is not None
        await end(farm, agent, job_id)
        await until(lambda: farm.live.of_job(job_id) is None)
        done = await farm.interventions.carry_out(job_id, PAUSE)
        assert done.outcome == "stale_target"
        assert agent.told(wire.Intervene) == []


async def test_when_what_watches_an_attempt_breaks_nobody_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Watch, "end", breaks)
    agent, known = Agent(), []

    async def broken() -> None:
        async with living(agent), farm_on(tmp_path) as farm:
            await agent.dial(farm)
            known.append((farm, await farm.submit()))
            assert farm.loop is not None
            await asyncio.wait({farm.loop})

    with pytest.raises(ExceptionGroup) as raised:
        await broken()
    assert raised.group_contains(ZeroDivisionError, depth=None)
    ((farm, job_id),) = known
    assert farm.live.of_job(job_id) is None
    assert (await farm.interventions.carry_out(job_id, PAUSE)).outcome == "stale_target"


async def test_an_answer_of_who_has_given_up_waiting_is_dropped(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path) as farm:
        farm.interventions.advertised(A, ("pause",))
        await agent.dial(farm)
        job_id = await farm.submit()
        await agent.running()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(farm.interventions.carry_out(job_id, PAUSE))
            await until(lambda: agent.told(wire.Intervene))
            asking.cancel()
        (asked,) = agent.told(wire.Intervene)
        late = wire.Intervened(intervention_id=asked.intervention_id, outcome="applied")
        farm.interventions.answered(A, late)
        await agent.end()
        await farm.state(job_id, "succeeded")
