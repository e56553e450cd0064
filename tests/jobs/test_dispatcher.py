"""Jobs and agents, in every order of mishaps, over the real ledger."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId
from farm.errors import StoreUnavailableError
from farm.jobs import dispatcher
from farm.protocol import messages as wire
from farm.protocol.failures import Reason
from farm.stores.records import Attempt, Effect
from tests.jobs.farm import WINDOW_S, Agent, Farm, farm_on, living, until
from tests.patience import PATIENCE_S


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    async with farm_on(tmp_path) as farm:
        yield farm


@pytest.fixture
async def agent(farm: Farm) -> AsyncIterator[Agent]:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        yield agent


BEGUN = wire.EffectBegun(effect_id="e1", index=0, effect="once")


async def test_a_hundred_jobs_go_through_one_slot_one_at_a_time(farm: Farm) -> None:
    agent = Agent(automatic=True)
    async with living(agent):
        await agent.dial(farm)
        jobs = [await farm.submit(name=f"job {n}") for n in range(100)]
        for job_id in jobs:
            job = await farm.state(job_id, "succeeded", within_s=30)
            assert (job.attempts, job.free_losses) == (1, 0)
    assert agent.most_at_once == 1
    snapshot = await farm.registry.snapshot(now=farm.now)
    assert snapshot.clients[0].used_slots() == 0


async def test_a_job_nobody_can_take_says_why_and_is_in_nobodys_way(
    farm: Farm, agent: Agent
) -> None:
    stuck = await farm.submit(requires={"metadata": {"region": "eu"}})
    behind = await farm.submit(name="behind")
    assert await farm.waits(stuck) == "requirements_not_met"
    await agent.running()
    await agent.end()
    await farm.state(behind, "succeeded")
    assert (await farm.job(stuck)).state is JobState.QUEUED
    other = Agent(client_id="b", metadata={"region": "eu"}, automatic=True)
    async with living(other):
        await other.dial(farm)
        await farm.state(stuck, "succeeded")


async def test_without_an_agent_a_job_waits_and_says_so(farm: Farm) -> None:
    first, second = await farm.submit(), await farm.submit()
    assert await farm.waits(first) == "no_agent"
    assert await farm.waits(second) == "no_agent"


async def test_nothing_is_remembered_of_jobs_that_wait_no_more(farm: Farm) -> None:
    job_id = await farm.submit()
    await farm.waits(job_id)
    key = (await farm.job(job_id)).match_key
    await farm.jobs.cancel((await farm.job(job_id)).namespace, job_id)
    await farm.passes(5)  # they are, until they would be tried again
    await until(lambda: farm.dispatcher.waiting(key) is None)


async def test_a_busy_answer_costs_no_attempt_and_is_bounded(farm: Farm) -> None:
    agent = Agent(refuse_runs="busy")
    async with living(agent):
        await agent.dial(farm)
        job_id = await farm.submit()
        for losses in (1, 2):
            await until_free_losses(farm, job_id, losses)
            job = await farm.job(job_id)
            assert (job.attempts, job.state) == (0, JobState.QUEUED)
            await farm.registry.heard(ClientId("a"), agent.link, now=farm.now)
            await farm.passes(9)
            await farm.registry.heard(ClientId("a"), agent.link, now=farm.now)
        job = await farm.state(job_id, "failed")
    assert (job.free_losses, job.attempts) == (2, 1)


async def test_a_busy_answer_about_a_run_that_is_over_changes_nothing(farm: Farm) -> None:
    agent = Agent()
    async with living(agent):
        await agent.dial(farm)
        over = await farm.submit()
        run = await agent.running()
        await agent.start()
        await agent.end()
        await farm.state(over, "succeeded")
        await until(lambda: not agent.runs)
        goes_on = await farm.submit()
        await agent.running()
        await agent.start()
        before = await farm.held()
        await agent.answer(wire.Ack(command_id=run.command_id, refused="busy"))
        assert await farm.held() == before
        await agent.end()
        for job_id in (over, goes_on):
            job = await farm.state(job_id, "succeeded")
            assert (job.free_losses, job.attempts) == (0, 1)


async def test_a_job_whose_wake_was_lost_is_found_by_time(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_SAFETY_S", 0.05)
    agent = Agent(automatic=True)
    async with living(agent):
        await agent.dial(farm)
        await farm.state(await farm.submit(), "succeeded")
        monkeypatch.setattr(farm.dispatcher, "wake", lambda: None)
        await farm.state(await farm.submit(), "succeeded")


async def until_free_losses(farm: Farm, job_id: str, losses: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await farm.job(job_id)).free_losses < losses:
            await asyncio.sleep(0.005)


async def test_an_agent_that_does_not_understand_the_job_fails_it(farm: Farm) -> None:
    agent = Agent(refuse_runs="not_understood")
    async with living(agent):
        await agent.dial(farm)
        job = await farm.state(await farm.submit(), "failed")
    assert job.failure is not None
    assert job.failure["reason"] == "internal"


async def test_where_no_window_opens_it_is_not_tried_without_a_rest(farm: Farm) -> None:
    broken = Agent(fail_opening=True, slots=4)
    async with living(broken):
        await broken.dial(farm)
        jobs = [await farm.submit(name=f"{n}") for n in range(10)]
        assert await farm.waits(jobs[0]) == "creation_failed"
        for _ in range(20):
            farm.dispatcher.wake()
            await asyncio.sleep(0.005)
        assert broken.opened <= 4
        broken.fail_opening, broken.automatic = False, True
        await farm.passes(2)
        for job_id in jobs:
            await farm.state(job_id, "succeeded")
        assert [(await farm.job(job_id)).free_losses for job_id in jobs] == [0] * 10


async def test_an_agent_lost_before_it_began_costs_no_attempt(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.running()
    await farm.dispatcher.agents.is_gone(ClientId("a"), "its process has ended")
    async with asyncio.timeout(PATIENCE_S):
        while not (await farm.job(job_id)).free_losses:
            await asyncio.sleep(0.005)
    job = await farm.job(job_id)
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)


async def test_an_agent_lost_after_it_began_costs_one_and_the_next_waits(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await farm.dispatcher.agents.is_gone(ClientId("a"), "its process has ended")
    job = await farm.state(job_id, "queued")
    assert (job.attempts, job.free_losses) == (1, 0)
    assert farm.now < job.not_before <= farm.now + 4
    other = Agent(client_id="b", automatic=True)
    async with living(other):
        await other.dial(farm)
        # One that need not wait goes by, so the dispatcher has looked at both.
        await farm.state(await farm.submit(name="later"), "succeeded")
        assert (await farm.job(job_id)).state is JobState.QUEUED
        await farm.passes(4)
        await farm.registry.heard(ClientId("b"), other.link, now=farm.now)
        await farm.state(job_id, "succeeded")
    assert [a.state for a in await farm.attempts(job_id)] == ["lost", "succeeded"]


async def test_an_effect_begun_and_not_done_makes_the_job_uncertain(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    stored = await agent.tell(wire.Started(context_id="T1"), BEGUN)
    assert stored.seq == 2
    await farm.dispatcher.agents.is_gone(ClientId("a"), "gone")
    await farm.state(job_id, "uncertain")


async def test_an_effect_that_begins_while_the_end_is_decided_makes_the_job_uncertain(
    farm: Farm, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await farm.submit()
    await agent.start()
    read, begun = farm.ledger.effects, iter((True, False))

    async def read_just_before(job_id: str, *, attempt_id: str) -> Sequence[Effect]:
        found = await read(job_id, attempt_id=attempt_id)
        if next(begun):
            assert (await agent.tell(BEGUN, first=2)).seq == 2
        return found

    monkeypatch.setattr(farm.ledger, "effects", read_just_before)
    agent.tabs.clear()
    await agent.report()
    await farm.state(job_id, "uncertain")
    assert len(await farm.attempts(job_id)) == 1
    assert list(begun) == []


async def test_an_effect_that_is_done_is_not_done_again(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.tell(wire.Started(context_id="T1"), BEGUN, wire.EffectDone(effect_id="e1"))
    await agent.end("failed", Reason.NAVIGATION_FAILED)
    job = await farm.state(job_id, "failed")
    assert len(await farm.attempts(job_id)) == job.attempts == 1


async def test_a_page_that_may_still_be_there_is_not_tried_again(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.end("failed", Reason.NAVIGATION_FAILED, page_gone=False)
    await farm.state(job_id, "failed")


async def test_an_assignment_that_ended_under_a_job_is_a_loss_and_no_cancellation(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.end("failed", Reason.STALE_ASSIGNMENT)
    await farm.state(job_id, "queued")
    assert (await farm.attempts(job_id))[0].state is AttemptState.LOST


async def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_agent(
    farm: Farm, agent: Agent
) -> None:
    running, queued = await farm.submit(), await farm.submit(name="second")
    run = await agent.running()
    await farm.jobs.cancel((await farm.job(queued)).namespace, queued)
    assert (await farm.job(queued)).state is JobState.CANCELLED
    await farm.jobs.cancel((await farm.job(running)).namespace, running)
    await until(lambda: agent.told(wire.Cancel))
    assert agent.told(wire.Cancel) == [wire.Cancel(command_id=run.command_id)]
    assert (await farm.job(running)).state is JobState.CANCELLING
    await agent.end("cancelled")
    await farm.state(running, "cancelled")


async def test_a_run_that_a_person_stops_at_its_agent_cancels_the_job(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.end("cancelled", Reason.CANCELLED)
    await farm.state(job_id, "cancelled")
    assert (await farm.attempts(job_id))[0].state is AttemptState.CANCELLED


async def test_a_cancellation_reaches_an_agent_that_was_away(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    run = await agent.running()
    await farm.jobs.cancel((await farm.job(job_id)).namespace, job_id)
    await until(lambda: agent.told(wire.Cancel))
    agent.heard.clear()
    await agent.hang_up()
    await agent.dial(farm)
    await until(lambda: agent.told(wire.Cancel))
    assert agent.told(wire.Cancel)[0].command_id == run.command_id


async def test_a_run_the_agent_no_longer_has_is_lost_when_it_says_hello(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.hang_up()
    agent.runs.clear()
    await agent.dial(farm)
    await farm.state(job_id, "queued")
    events = await farm.ledger.events(job_id, after=0)
    assert "agent_link_closed" in [event.type for event in events]


async def test_a_run_the_agent_still_has_goes_on_over_a_new_link(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.hang_up()
    await agent.dial(farm)
    stored = await agent.tell(wire.Notice(code="c", detail="d"), first=2)
    assert (stored.seq, stored.refused) == (2, False)
    await agent.end()
    await farm.state(job_id, "succeeded")


async def test_a_tab_that_is_gone_from_the_report_ends_its_attempt(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    agent.tabs.clear()
    await agent.report()
    await farm.state(job_id, "queued")
    assert (await farm.attempts(job_id))[0].state is AttemptState.LOST


async def test_a_silent_agent_is_given_up_after_its_window_and_a_quarter(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    await agent.start()
    await agent.hang_up()
    await farm.passes(WINDOW_S * 1.25)
    await farm.dispatcher.agents.sweep_gone()
    assert (await farm.job(job_id)).state is JobState.RUNNING
    await farm.passes(0.1)
    await farm.dispatcher.agents.sweep_gone()
    await farm.state(job_id, "queued")
    assert (await farm.registry.snapshot(now=farm.now)).clients == ()
    refused = await agent.tell(wire.Notice(code="c", detail="late"), first=2)
    assert refused.refused


async def test_a_result_said_twice_is_stored_once_and_confirmed(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.start()
    result = await agent.end()
    await until(lambda: [m for m in agent.told(wire.Stored) if m.done])
    before = await farm.ledger.events(job_id, after=0)
    assert not await agent.answer(result)
    assert await farm.dispatcher.agents.attempt_is_over(str(result.attempt_id))
    assert await farm.ledger.events(job_id, after=0) == before


async def test_evidence_of_another_agent_or_under_another_token_is_refused(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit()
    run = await agent.running()
    events = wire.Events(
        command_id=run.command_id,
        attempt_id=agent.attempt_of(run),
        token=wire.Token(store_epoch=9, counter=9),
        entries=(wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1")),),
    )
    assert (await farm.recorder.record(ClientId("a"), events)).refused
    assert run.token is not None
    own = events.model_copy(update={"token": run.token})
    assert (await farm.recorder.record(ClientId("b"), own)).refused
    assert not await farm.node.answered(
        ClientId("b"), wire.Result(command_id=run.command_id, outcome="succeeded")
    )
    assert not (await farm.attempts(job_id))[0].began
    assert (await farm.recorder.record(ClientId("a"), own)).seq == 1


async def test_a_result_rests_on_what_was_told_before_it(farm: Farm, agent: Agent) -> None:
    await farm.submit()
    run = await agent.running()
    await agent.start()
    result = wire.Result(
        command_id=run.command_id, attempt_id=agent.attempt_of(run), seq=2, outcome="succeeded"
    )
    assert not farm.recorder.has_all_of(result)
    await agent.tell(wire.Notice(code="c", detail="d"), first=2)
    assert farm.recorder.has_all_of(result)


async def test_an_assignment_is_renewed_while_its_job_runs(farm: Farm, agent: Agent) -> None:
    await farm.submit()
    await agent.running()
    await farm.passes(200)
    (client,) = (await farm.registry.snapshot(now=farm.now)).clients
    await farm.registry.heard(ClientId("a"), agent.link, now=farm.now)

    async with asyncio.timeout(PATIENCE_S):
        while (await farm.held()).renewed_at < farm.now:
            await asyncio.sleep(0.005)
    assert await farm.manager.release_expired() == 0
    assert client.assignments


async def test_a_job_its_agent_never_ends_is_stopped_and_then_given_up(
    farm: Farm, agent: Agent
) -> None:
    job_id = await farm.submit(timeout="10s")
    await agent.running()
    await farm.passes(71)
    await until(lambda: agent.told(wire.Cancel))
    assert agent.told(wire.Cancel)[0].reason == "timed_out"
    await farm.passes(60)
    job = await farm.state(job_id, "failed")
    assert len(await farm.attempts(job_id)) == job.attempts == 1


async def test_a_cancelled_run_the_agent_does_not_know_is_lost(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    run = await agent.running()
    await farm.jobs.cancel((await farm.job(job_id)).namespace, job_id)
    await until(lambda: agent.told(wire.Cancel))
    await agent.answer(wire.Ack(command_id=run.command_id, refused="unknown_context"))
    await farm.state(job_id, "cancelled")


# The store


async def test_a_new_life_begins_when_the_store_is_there(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_STORE_PAUSE_S", 0.01)
    assert farm.loop is not None
    farm.loop.cancel()
    await asyncio.wait({farm.loop})
    read, tries = farm.ledger.running_attempts, iter((False, False, True))

    async def read_in_the_end() -> Sequence[Attempt]:
        if not next(tries):
            raise StoreUnavailableError("the disk is away")
        return await read()

    monkeypatch.setattr(farm.ledger, "running_attempts", read_in_the_end)
    async with asyncio.TaskGroup() as group:
        life = group.create_task(farm.dispatcher.run())
        await farm.dispatcher.ready()
        life.cancel()
    assert list(tries) == []


async def test_the_end_of_a_job_outlives_a_store_that_is_away(farm: Farm, agent: Agent) -> None:
    job_id = await farm.submit()
    await agent.start()
    farm.database.away = True
    await agent.end()
    await until(lambda: farm.database.failed)
    assert farm.live.of_job(job_id) is not None
    farm.database.away = False
    await farm.state(job_id, "succeeded")


async def test_a_job_that_cannot_be_started_for_want_of_a_store_is_started_later(
    farm: Farm,
) -> None:
    job_id = await farm.submit()
    farm.database.away = True
    agent = Agent(automatic=True)
    async with living(agent):
        await agent.dial(farm)
        await until(lambda: farm.database.failed)
        farm.database.away = False
        await farm.state(job_id, "succeeded")
    assert len(await farm.attempts(job_id)) == 1


async def test_what_is_taken_for_an_attempt_that_has_not_begun_comes_back_soon(
    farm: Farm, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, may_start, start = asyncio.Event(), asyncio.Event(), farm.ledger.start_attempt

    async def start_later(*args: Any, **members: Any) -> Attempt | None:
        starts.set()
        await may_start.wait()
        return await start(*args, **members)

    monkeypatch.setattr(farm.ledger, "start_attempt", start_later)
    await farm.submit()
    await starts.wait()
    # Whoever has taken it may be dead by now.
    assert (await farm.held()).expires_at - farm.now == 30
    may_start.set()
    await agent.running()
    assert (await farm.held()).expires_at - farm.now == 300


async def test_a_closed_intake_starts_nothing(farm: Farm, agent: Agent) -> None:
    farm.dispatcher.close_intake()
    job_id = await farm.submit()
    for _ in range(2):  # the first may have begun before the job was there
        farm.dispatcher.wake()
        await until(lambda: not farm.dispatcher._stirred.is_set())
    assert (await farm.job(job_id)).state is JobState.QUEUED
    assert agent.opened == 0


async def test_what_was_taken_for_a_job_whose_task_never_began_is_given_back(
    farm: Farm, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = farm.manager.begin

    def stop() -> None:
        assert farm.loop is not None
        farm.loop.cancel()
        (task,) = [t for t in asyncio.all_tasks() if t.get_name().startswith("job ")]
        task.cancel()

    async def begin_and_stop(*args: Any, **options: Any) -> Any:
        # As when another job's task has just broken: this one's is cancelled before its first step.
        asyncio.get_running_loop().call_soon(stop)
        return await begin(*args, **options)

    monkeypatch.setattr(farm.manager, "begin", begin_and_stop)
    await farm.submit()
    await until(lambda: farm.loop is not None and farm.loop.done())
    (client,) = (await farm.registry.snapshot(now=farm.now)).clients
    assert client.used_slots() == 0


async def test_a_registry_that_cannot_be_waited_on_ends_nothing(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = farm.registry.changed_since
    failures: list[int] = []

    async def away(generation: int) -> None:
        if not failures:
            failures.append(generation)
            raise StoreUnavailableError("the registry is away")
        await waited(generation)

    monkeypatch.setattr(farm.registry, "changed_since", away)
    job_id = await farm.submit()
    await until(lambda: bool(failures))
    agent = Agent(automatic=True)
    async with living(agent):
        await agent.dial(farm)
        await farm.state(job_id, "succeeded")
