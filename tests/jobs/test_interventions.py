"""What people do to jobs: who is asked, what is recorded, and what it does to the clocks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from farm.core.control import Control
from farm.core.model import ClientId
from farm.errors import ConflictError
from farm.jobs.interventions import Done, Wanted
from farm.protocol import messages as wire
from farm.protocol.failures import Reason
from tests.jobs.farm import NS, Agent, Farm, farm_on, living, until
from tests.patience import PATIENCE_S

CAN: tuple[wire.Intervention, ...] = ("pause", "resume", "takeover", "hand_back")
PAUSE = Wanted(kind="pause", by="anna")


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path) as farm:
        yield farm


@pytest.fixture
async def agent(farm: Farm) -> AsyncIterator[Agent]:
    async with agent_of(farm) as agent:
        yield agent


@asynccontextmanager
async def agent_of(farm: Farm) -> AsyncIterator[Agent]:
    agent = Agent()
    farm.interventions.advertised(ClientId("a"), CAN)
    async with living(agent):
        await agent.dial(farm)
        yield agent


def asked(agent: Agent) -> list[wire.Intervene]:
    return [m for m in agent.heard if isinstance(m, wire.Intervene)]


async def answered(farm: Farm, agent: Agent, **answer: Any) -> wire.Intervene:
    """Wait until the agent is asked, and let it answer; another's answer is none, nor a second."""
    await until(lambda: asked(agent))
    wanted = asked(agent)[-1]
    said = {"intervention_id": wanted.intervention_id, "outcome": "applied"} | answer
    other = said | {"outcome": "stale_target", "detail": "not its own"}
    farm.interventions.answered(ClientId("b"), wire.Intervened.model_validate(other))
    farm.interventions.answered(ClientId("a"), wire.Intervened.model_validate(said))
    farm.interventions.answered(ClientId("a"), wire.Intervened.model_validate(other))
    return wanted


async def recorded(farm: Farm, job_id: str) -> list[dict[str, Any]]:
    events = await farm.ledger.events(job_id, after=0)
    return [{k: e.data[k] for k in ("kind", "by", "outcome")} for e in events if is_one(e.type)]


def is_one(event_type: str) -> bool:
    return event_type == "intervention"


async def test_one_goes_to_the_agent_that_holds_the_attempt_and_is_recorded(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    run = await agent.running()
    async with asyncio.TaskGroup() as group:
        doing = group.create_task(farm.jobs.intervene(NS, job_id, PAUSE))
        wanted = await answered(farm, agent)
    assert (wanted.command_id, wanted.token, wanted.kind) == (run.command_id, run.token, "pause")
    done = doing.result()
    assert (done.outcome, done.attempt_id) == ("applied", agent.attempt_of(run))
    assert await recorded(farm, job_id) == [{"kind": "pause", "by": "anna", "outcome": "applied"}]
    await agent.end()


async def test_what_an_agent_has_not_said_that_it_can_do_is_never_sent(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.running()
    done = await farm.jobs.intervene(NS, job_id, Wanted(kind="message", by="anna", text="hello"))
    assert done.outcome == "capability_not_supported"
    farm.interventions.advertised(ClientId("a"), ())
    assert (await farm.jobs.intervene(NS, job_id, PAUSE)).outcome == "capability_not_supported"
    assert asked(agent) == []
    outcomes = [one["outcome"] for one in await recorded(farm, job_id)]
    assert outcomes == ["capability_not_supported"] * 2
    await agent.end()


async def test_an_agent_that_is_away_or_does_not_answer_makes_it_stale(
    tmp_path: Path,
) -> None:
    async with farm_on(tmp_path, answer_s=0.05) as farm, agent_of(farm) as agent:
        job_id = await farm.submit()
        await agent.running()
        assert (await farm.jobs.intervene(NS, job_id, PAUSE)).outcome == "stale_target"
        assert len(asked(agent)) == 1
        await agent.hang_up()
        done = await farm.jobs.intervene(NS, job_id, PAUSE)
        assert (done.outcome, done.detail) == ("stale_target", "the agent a can't be reached")
        assert len(asked(agent)) == 1


@pytest.mark.parametrize(("sent", "over"), [(False, False), (True, True)])
async def test_nobody_is_asked_for_an_attempt_that_is_not_sent_yet_or_is_over(
    farm: Farm, agent: Agent, sent: bool, over: bool
) -> None:
    job_id = await farm.submit()
    await agent.running()
    live = farm.live.of_job(job_id)
    assert live is not None
    live.sent, live.over = sent, over
    done = await farm.jobs.intervene(NS, job_id, PAUSE)
    assert (done.outcome, done.detail) == ("stale_target", "no attempt of the job is running")
    assert asked(agent) == []
    live.sent, live.over = True, False
    await agent.end()


async def test_what_the_agent_refuses_is_passed_on(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.running()
    async with asyncio.TaskGroup() as group:
        wanted = Wanted(kind="hand_back", by="anna")
        doing = group.create_task(farm.jobs.intervene(NS, job_id, wanted))
        await answered(farm, agent, outcome="out_of_place", detail="nobody has taken over")
    assert doing.result().outcome == "out_of_place"
    assert doing.result().detail == "nobody has taken over"
    await agent.end()


async def test_a_queued_job_waits_in_the_queue_until_it_is_resumed(farm: Farm) -> None:
    job_id = await farm.submit()
    assert (await farm.jobs.intervene(NS, job_id, PAUSE)).outcome == "applied"
    agent = Agent(automatic=True)
    async with living(agent):
        await agent.dial(farm)
        other = await farm.submit(name="another")
        await farm.state(other, "succeeded")
        job = await farm.job(job_id)
        assert (job.state, job.control, job.control_by) == ("queued", Control.PAUSED, "anna")
        await farm.jobs.intervene(NS, job_id, Wanted(kind="resume", by="bert"))
        await farm.state(job_id, "succeeded")


async def test_the_page_of_a_queued_job_can_not_be_taken_over(farm: Farm) -> None:
    job_id = await farm.submit()
    with pytest.raises(ConflictError, match="queued"):
        await farm.jobs.intervene(NS, job_id, Wanted(kind="takeover", by="anna"))


async def test_a_job_that_has_ended_or_is_being_stopped_is_a_conflict(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.running()
    await farm.jobs.cancel(NS, job_id, by="anna")
    with pytest.raises(ConflictError, match="cancelling"):
        await farm.jobs.intervene(NS, job_id, PAUSE)
    await agent.end("cancelled")
    await farm.state(job_id, "cancelled")
    with pytest.raises(ConflictError, match="cancelled"):
        await farm.jobs.intervene(NS, job_id, PAUSE)


async def test_the_farms_own_clock_stands_still_while_a_job_is_held(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit(timeout={"job": "100s"})
    await agent.running()
    await agent.tell(wire.Started(context_id="T1"), wire.ControlMoved(kind="paused", by="anna"))
    assert (await farm.job(job_id)).control is Control.PAUSED
    for _ in range(20):
        await farm.passes(50)
        await until_renewed(farm)
    assert not any(isinstance(m, wire.Cancel) for m in agent.heard)
    await agent.tell(wire.ControlMoved(kind="resumed", by="anna"), first=3)
    await farm.passes(161)
    await until(lambda: any(isinstance(m, wire.Cancel) for m in agent.heard))
    await agent.end("timed_out", Reason.JOB_TIMEOUT)
    await farm.state(job_id, "timed_out")


async def until_renewed(farm: Farm) -> None:
    """Wait until the one assignment has been renewed at the present moment."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (client,) = (await farm.registry.snapshot(now=farm.now)).clients
            if next(iter(client.assignments.values())).renewed_at == farm.now:
                return
            await asyncio.sleep(0.002)


async def test_a_paused_attempt_that_is_lost_is_not_tried_again_before_it_is_resumed(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit(retry={"max_attempts": 3})
    await agent.running()
    await agent.tell(wire.Started(context_id="T1"), wire.ControlMoved(kind="paused", by="anna"))
    await agent.end("failed", Reason.BROWSER_LOST)
    job = await farm.state(job_id, "queued")
    assert (job.control, job.control_by) == (Control.PAUSED, "anna")
    agent.runs.clear()
    await farm.passes(5)
    await farm.jobs.intervene(NS, job_id, Wanted(kind="resume", by="anna"))
    await agent.running()
    await agent.start()
    await agent.end()
    await farm.state(job_id, "succeeded")


async def test_a_pause_outlives_a_restart_of_the_farm(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent):
        async with farm_on(tmp_path) as first:
            await agent.dial(first)
            job_id = await first.submit(timeout={"job": "100s"})
            await agent.running()
            moved = wire.ControlMoved(kind="taken_over", by="anna")
            await agent.tell(wire.Started(context_id="T1"), moved)
        async with farm_on(tmp_path) as second:
            second.interventions.advertised(ClientId("a"), CAN)
            await agent.dial(second)
            await until(lambda: second.live.of_job(job_id) is not None)
            job = await second.job(job_id)
            assert (job.state, job.control, job.control_by) == ("running", Control.HUMAN, "anna")
            await second.passes(5_000)
            async with asyncio.TaskGroup() as group:
                wanted = Wanted(kind="hand_back", by="bert")
                doing = group.create_task(second.jobs.intervene(NS, job_id, wanted))
                await answered(second, agent)
            assert isinstance(doing.result(), Done)
            assert not any(isinstance(m, wire.Cancel) for m in agent.heard)
            await agent.tell(wire.ControlMoved(kind="handed_back", by="bert"), first=3)
            await agent.end()
            await second.state(job_id, "succeeded")
