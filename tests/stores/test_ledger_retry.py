"""Running a job again that has ended, as every implementation of the `Ledger` port does it."""

import asyncio
from collections.abc import Callable

import pytest

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.core.retry import Doubt
from farm.errors import ConflictError, NotFoundError
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Effect, Job
from tests.stores.ledger_queue import next_id
from tests.stores.ledger_rows import NS, TOKEN, accepted, at, effect, finish, running, said, started

S = JobState


async def retry(ledger: Ledger, doubt: Doubt = Doubt.HOLD, *, by: str = "anna") -> Job:
    return await ledger.retry(NS, "j1", doubt, now=at(5), by=by)


async def ended(ledger: Ledger, state: JobState, *effects: Effect, attempt: str = "a1") -> None:
    """End an attempt that runs; an effect is done where it says so."""
    told = [said(n, effect_begun=one) for n, one in enumerate(effects, 1)]
    await ledger.record(attempt, TOKEN, told, now=at(1))
    failure = {"reason": "timeout"}
    assert await ledger.finish(finish(state, attempt, failure=failure), now=at(2)) is not None


@pytest.mark.parametrize("state", [S.FAILED, S.CANCELLED, S.TIMED_OUT])
async def test_a_job_that_ended_without_success_is_queued_as_if_never_tried(
    ledger: Ledger, state: JobState
) -> None:
    await running(ledger)
    await ended(ledger, S.QUEUED)
    assert await started(ledger, "j1", "a2") is not None
    await ended(ledger, state, attempt="a2")
    job = await retry(ledger)
    assert (job.state, job.attempts, job.free_losses) == (S.QUEUED, 0, 0)
    assert (job.failure, job.finished_at, job.cancel_requested) == (None, None, False)
    assert job.not_before == at(5)
    assert await ledger.job(NS, "j1") == job
    assert await next_id(ledger, now=at(5)) == "j1"
    third = await started(ledger, "j1", "a3")
    assert third is not None
    assert third.number == 3
    line = [e for e in await ledger.events("j1", after=0) if e.type == "job_retried"]
    assert [e.data for e in line] == [{"from": state, "to": "queued", "by": "anna"}]


async def test_a_job_cancelled_in_the_queue_is_queued_again(ledger: Ledger) -> None:
    await accepted(ledger)
    await ledger.request_cancel(NS, "j1", now=at(1))
    job = await retry(ledger)
    assert (job.state, job.cancel_requested) == (S.QUEUED, False)
    assert await started(ledger) is not None


async def test_asking_twice_is_asking_once_also_while_it_runs(ledger: Ledger) -> None:
    await running(ledger)
    await ended(ledger, S.FAILED)
    first = await retry(ledger)
    assert await retry(ledger, by="bert") == first
    assert await started(ledger, "j1", "a2") is not None
    assert (await retry(ledger)).state is S.RUNNING
    types = [e.type for e in await ledger.events("j1", after=0)]
    assert types.count("job_retried") == 1


async def test_of_two_who_ask_at_once_one_moves_it(new_ledger: Callable[[], Ledger]) -> None:
    ledger = new_ledger()
    await ledger.open()
    await running(ledger)
    await ended(ledger, S.FAILED)
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(retry(ledger), name="retry")
    types = [e.type for e in await ledger.events("j1", after=0)]
    assert types.count("job_retried") == 1
    await ledger.close()


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.UNCERTAIN])
async def test_what_succeeded_and_what_is_uncertain_is_refused(
    ledger: Ledger, state: JobState
) -> None:
    await running(ledger)
    await ended(ledger, state)
    with pytest.raises(ConflictError, match=state) as refused:
        await retry(ledger)
    assert refused.value.context["state"] is state
    assert (await ledger.job(NS, "j1")).state is state


async def test_a_job_that_is_being_cancelled_is_refused(ledger: Ledger) -> None:
    await running(ledger)
    await ledger.request_cancel(NS, "j1", now=at(1))
    with pytest.raises(ConflictError, match="cancelling"):
        await retry(ledger)


DONE, BEGUN = effect("e1", done_at=at(1)), effect("e2")


@pytest.mark.parametrize("state", [S.FAILED, S.CANCELLED, S.TIMED_OUT])
@pytest.mark.parametrize(
    ("effects", "doubt", "reason"),
    [
        ((DONE,), Doubt.HOLD, "effect_would_repeat"),
        ((DONE,), Doubt.RETRY, "effect_would_repeat"),
        ((BEGUN,), Doubt.HOLD, "effect_uncertain"),
        ((DONE, BEGUN), Doubt.FAIL, "effect_uncertain"),
        ((DONE, BEGUN), Doubt.RETRY, "effect_would_repeat"),
    ],
)
async def test_a_job_whose_last_attempt_might_be_repeated_to_effect_is_refused(
    ledger: Ledger, state: JobState, effects: tuple[Effect, ...], doubt: Doubt, reason: str
) -> None:
    await running(ledger)
    await ended(ledger, state, *effects)
    before = await ledger.job(NS, "j1")
    with pytest.raises(ConflictError) as refused:
        await retry(ledger, doubt)
    assert refused.value.context["reason"] == reason
    assert await ledger.job(NS, "j1") == before
    assert await started(ledger, "j1", "a2") is None


async def test_a_doubt_that_was_decided_to_be_a_failure_still_bars(ledger: Ledger) -> None:
    await running(ledger)
    await ended(ledger, S.UNCERTAIN, BEGUN)
    await ledger.resolve(NS, "j1", S.FAILED, now=at(3), by="bert")
    with pytest.raises(ConflictError) as refused:
        await retry(ledger)
    assert refused.value.context["reason"] == "effect_uncertain"
    resolved = [e for e in await ledger.events("j1", after=0) if e.type == "job_resolved"]
    assert resolved[0].data["by"] == "bert"


@pytest.mark.parametrize(
    ("effects", "doubt"),
    [((effect("e1", effect="idempotent", done_at=at(1)),), Doubt.HOLD), ((BEGUN,), Doubt.RETRY)],
)
async def test_what_may_be_repeated_is_no_bar(
    ledger: Ledger, effects: tuple[Effect, ...], doubt: Doubt
) -> None:
    await running(ledger)
    await ended(ledger, S.FAILED, *effects)
    assert (await retry(ledger, doubt)).state is S.QUEUED


async def test_a_job_of_another_namespace_is_not_found(ledger: Ledger) -> None:
    await running(ledger)
    await ended(ledger, S.FAILED)
    with pytest.raises(NotFoundError):
        await ledger.retry(Namespace("other"), "j1", Doubt.HOLD, now=at(5))
    assert (await ledger.job(NS, "j1")).state is S.FAILED
