"""Jobs that run in a flow, and in a tab where that won't do, over the real ledger."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.core.job_states import AttemptState
from farm.protocol import messages as wire
from farm.protocol.failures import Reason
from tests.jobs.farm import NS, Agent, Farm, farm_on, living, until

BEGUN = wire.EffectBegun(effect_id="e1", index=0, effect="once")
ITEMS = wire.Items(dataset="items", first=0, items=({"a": 1}, {"a": 2}))


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path) as farm:
        yield farm


@pytest.fixture
async def flows(farm: Farm) -> AsyncIterator[Agent]:
    agent = Agent(client_id="flows", flows=1)
    async with living(agent):
        await agent.dial(farm)
        yield agent


@pytest.fixture
async def tabs(farm: Farm) -> AsyncIterator[Agent]:
    agent = Agent(client_id="tabs")
    async with living(agent):
        await agent.dial(farm)
        yield agent


async def items_of(farm: Farm, job_id: str) -> list[object]:
    return [dict(item.data) async for item in farm.ledger.items(job_id, namespace=NS)]


async def test_without_a_browser_a_job_runs_in_a_flow_and_nowhere_else(
    farm: Farm, flows: Agent, tabs: Agent
) -> None:
    job_id = await farm.submit(browser="none")
    run = await flows.running()
    assert isinstance(run.body, wire.RunPlan)
    await flows.start()
    await flows.end(outcome="failed", reason=Reason.NEEDS_BROWSER)
    await farm.state(job_id, "failed")
    assert tabs.runs == {}


async def test_a_flow_is_told_how_to_show_itself(farm: Farm, flows: Agent) -> None:
    await farm.submit(browser={"use": "none", "locale": "de", "user_agent": "x"})
    run = await flows.running()
    assert isinstance(run.body, wire.RunPlan)
    assert (run.body.plan.options.locale, run.body.plan.options.user_agent) == ("de", "x")


async def test_without_an_agent_of_flows_a_job_that_wants_one_says_so(
    farm: Farm, tabs: Agent
) -> None:
    assert await farm.waits(await farm.submit(browser="none")) == "other_client_type"


async def test_what_will_not_do_in_a_flow_is_done_in_a_tab_and_leaves_nothing_behind(
    farm: Farm, flows: Agent, tabs: Agent
) -> None:
    job_id = await farm.submit(browser="auto", retry={"max_attempts": 1})
    await flows.running()
    await flows.tell(wire.Started(context_id="T1"), ITEMS)
    assert (await farm.job(job_id)).item_count == 2
    await flows.end(outcome="failed", reason=Reason.REQUIRED_MISSING)
    await tabs.running()
    job = await farm.job(job_id)
    assert (job.attempts, job.free_losses, job.item_count) == (0, 0, 0)
    assert await items_of(farm, job_id) == []
    await tabs.start()
    await tabs.end()
    job = await farm.state(job_id, "succeeded")
    assert (job.attempts, job.item_count) == (1, 0)
    first, second = await farm.attempts(job_id)
    assert (first.client_id, first.state) == ("flows", AttemptState.FAILED)
    assert (second.client_id, second.state) == ("tabs", AttemptState.SUCCEEDED)
    ended = [e for e in await farm.ledger.events(job_id, after=0) if e.type == "attempt_ended"]
    assert ended[0].data["next"] == "falls_back"


@pytest.mark.parametrize("done", [False, True])
async def test_no_tab_follows_a_flow_that_may_have_done_something_once(
    farm: Farm, flows: Agent, tabs: Agent, done: bool
) -> None:
    job_id = await farm.submit(browser="auto")
    await flows.running()
    more = (wire.EffectDone(effect_id="e1"),) if done else ()
    await flows.tell(wire.Started(context_id="T1"), BEGUN, *more)
    await flows.end(outcome="failed", reason=Reason.REQUIRED_MISSING)
    await farm.state(job_id, "failed" if done else "uncertain")
    assert tabs.runs == {}


async def test_a_passing_failure_of_a_flow_is_tried_again_in_a_flow(
    farm: Farm, flows: Agent, tabs: Agent
) -> None:
    job_id = await farm.submit(browser="auto")
    await flows.running()
    await flows.start()
    await flows.end(outcome="failed", reason=Reason.NAVIGATION_FAILED)
    await until(lambda: not flows.runs)
    farm.now = type(farm.now)(farm.now + 60)
    farm.dispatcher.wake()
    await flows.report()
    await tabs.report()
    await flows.running()
    assert (await farm.job(job_id)).attempts == 1
    assert tabs.runs == {}


async def test_where_nobody_has_flows_a_job_that_may_goes_to_a_tab_at_once(
    farm: Farm, tabs: Agent
) -> None:
    job_id = await farm.submit(browser="auto", retry={"max_attempts": 1})
    await tabs.running()
    await tabs.start()
    await tabs.end(outcome="failed", reason=Reason.REQUIRED_MISSING)
    job = await farm.state(job_id, "failed")
    assert job.attempts == 1


async def test_where_flows_are_busy_a_job_waits_for_them(
    farm: Farm, flows: Agent, tabs: Agent
) -> None:
    await farm.submit(browser="none")
    await flows.running()
    job_id = await farm.submit(browser="auto")
    assert await farm.waits(job_id) == "at_capacity"
    assert tabs.runs == {}
