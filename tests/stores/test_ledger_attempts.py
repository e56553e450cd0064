"""What the `Ledger` port promises about attempts and how they end, of every implementation."""

import asyncio

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import Token
from farm.errors import ConflictError, NotFoundError
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_queue import next_id
from tests.stores.ledger_rows import (
    NS,
    OTHER,
    T0,
    TOKEN,
    accepted,
    at,
    finish,
    running,
    said,
    started,
)


class TestStarting:
    async def test_an_attempt_reads_back_as_returned_and_its_job_runs(self, ledger: Ledger) -> None:
        await accepted(ledger)
        attempt = await started(ledger, now=at(2))
        assert attempt is not None
        assert await ledger.attempt("a1") == attempt
        assert (attempt.number, attempt.state, attempt.token) == (1, AttemptState.RUNNING, TOKEN)
        job = await ledger.job(NS, "j1")
        assert (job.state, job.started_at) == (JobState.RUNNING, at(2))

    async def test_only_a_queued_job_is_started(self, ledger: Ledger) -> None:
        assert await started(ledger, "nowhere") is None
        await running(ledger)
        assert await started(ledger, "j1", "a2") is None
        await ledger.finish(finish(), now=at(1))
        assert await started(ledger, "j1", "a3") is None
        assert [a.attempt_id for a in await ledger.attempts("j1")] == ["a1"]

    async def test_a_cancelled_job_is_not_started(self, ledger: Ledger) -> None:
        await accepted(ledger)
        await ledger.request_cancel(NS, "j1", now=T0)
        assert await started(ledger) is None

    async def test_of_twenty_at_once_one_gets_the_job(self, ledger: Ledger) -> None:
        await accepted(ledger)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    started(ledger, "j1", f"a{n}", token=Token(store_epoch=1, counter=n)),
                    name=f"start-{n}",
                )
                for n in range(20)
            ]
        won = [a for task in asked if (a := task.result()) is not None]
        assert len(won) == 1
        assert list(await ledger.attempts("j1")) == won

    async def test_attempts_are_numbered_and_the_first_start_is_kept(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.finish(finish(JobState.QUEUED, counts=False), now=at(1))
        await started(ledger, "j1", "a2", now=at(5))
        assert [a.number for a in await ledger.attempts("j1")] == [1, 2]
        assert [a.attempt_id for a in await ledger.running_attempts()] == ["a2"]
        assert (await ledger.job(NS, "j1")).started_at == T0


class TestFinishing:
    @pytest.mark.parametrize(
        "state",
        [JobState.SUCCEEDED, JobState.FAILED, JobState.TIMED_OUT, JobState.CANCELLED],
    )
    async def test_an_end_is_written_to_attempt_and_job_together(
        self, ledger: Ledger, state: JobState
    ) -> None:
        await running(ledger)
        failure = None if state is JobState.SUCCEEDED else {"reason": "step_timeout"}
        end = finish(state, failure=failure)
        job = await ledger.finish(end, now=at(3))
        assert job is not None
        assert await ledger.job(NS, "j1") == job
        assert (job.state, job.failure, job.finished_at) == (state, failure, at(3))
        attempt = await ledger.attempt("a1")
        assert (attempt.state, attempt.failure) == (end.attempt_state, failure)
        assert attempt.ended_at == at(3)
        assert await ledger.running_attempts() == []

    async def test_an_attempt_ends_once(self, ledger: Ledger) -> None:
        await running(ledger)
        job = await ledger.finish(finish(JobState.FAILED), now=at(1))
        events = await ledger.events("j1", after=0)
        assert await ledger.finish(finish(), now=at(2)) is None
        assert await ledger.job(NS, "j1") == job
        assert await ledger.events("j1", after=0) == events

    async def test_of_many_who_end_it_at_once_one_does(self, ledger: Ledger) -> None:
        await running(ledger)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(ledger.finish(finish(), now=at(n)), name=f"finish-{n}")
                for n in range(10)
            ]
        assert sum(task.result() is not None for task in asked) == 1

    async def test_an_attempt_counts_or_is_a_free_loss(self, ledger: Ledger) -> None:
        await running(ledger)
        lost = await ledger.finish(finish(JobState.QUEUED, counts=False), now=at(1))
        assert lost is not None
        assert (lost.attempts, lost.free_losses) == (0, 1)
        await started(ledger, "j1", "a2")
        failed = await ledger.finish(finish(JobState.QUEUED, "a2"), now=at(2))
        assert failed is not None
        assert (failed.attempts, failed.free_losses) == (1, 1)

    async def test_a_job_to_be_tried_again_has_not_finished_and_not_failed(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        job = await ledger.finish(
            finish(JobState.QUEUED, failure={"reason": "page_crashed"}, not_before=at(8)), now=at(1)
        )
        assert job is not None
        assert (job.state, job.not_before) == (JobState.QUEUED, at(8))
        assert (job.failure, job.finished_at) == (None, None)
        assert (await ledger.attempt("a1")).failure == {"reason": "page_crashed"}

    async def test_its_events_join_the_history_in_order(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.finish(finish(events=(("one", {"n": 1}), ("two", {}))), now=at(3))
        last = (await ledger.events("j1", after=0))[-2:]
        assert [(e.type, e.attempt_id, e.at) for e in last] == [
            ("one", "a1", at(3)),
            ("two", "a1", at(3)),
        ]
        assert last[0].data == {"n": 1}

    async def test_a_state_no_attempt_can_end_in_is_refused_and_changes_nothing(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        before = await ledger.job(NS, "j1")
        with pytest.raises(ValueError, match="running"):
            await ledger.finish(finish(JobState.RUNNING), now=at(1))
        assert await ledger.job(NS, "j1") == before
        assert (await ledger.attempt("a1")).state is AttemptState.RUNNING


class TestCancelling:
    async def test_a_queued_job_is_cancelled_at_once(self, ledger: Ledger) -> None:
        await accepted(ledger)
        job = await ledger.request_cancel(NS, "j1", now=at(1))
        assert (job.state, job.cancel_requested) == (JobState.CANCELLED, True)
        assert job.finished_at == at(1)
        assert await ledger.job(NS, "j1") == job
        assert await next_id(ledger) is None

    async def test_a_running_job_is_marked_and_goes_on_until_it_ends(self, ledger: Ledger) -> None:
        await running(ledger)
        job = await ledger.request_cancel(NS, "j1", now=at(1))
        assert (job.state, job.cancel_requested) == (JobState.CANCELLING, True)
        assert await ledger.record("a1", TOKEN, [said(1)], now=at(2)) == 1
        ended = await ledger.finish(finish(JobState.CANCELLED), now=at(3))
        assert ended is not None
        assert ended.state is JobState.CANCELLED

    @pytest.mark.parametrize(
        ("came_to", "becomes"),
        [
            (JobState.QUEUED, JobState.CANCELLED),
            (JobState.FAILED, JobState.FAILED),
            (JobState.TIMED_OUT, JobState.CANCELLED),
            (JobState.SUCCEEDED, JobState.SUCCEEDED),
            (JobState.UNCERTAIN, JobState.UNCERTAIN),
        ],
    )
    async def test_a_job_to_be_cancelled_is_not_tried_again(
        self, ledger: Ledger, came_to: JobState, becomes: JobState
    ) -> None:
        await running(ledger)
        await ledger.request_cancel(NS, "j1", now=at(1))
        job = await ledger.finish(finish(came_to, not_before=at(9)), now=at(2))
        assert job is not None
        assert job.state is becomes
        assert await next_id(ledger, now=at(99)) is None

    async def test_asking_twice_changes_nothing(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await running(ledger, "j2", "a2")
        for job_id in ("j1", "j2"):
            first = await ledger.request_cancel(NS, job_id, now=at(1))
            history = await ledger.events(job_id, after=0)
            assert await ledger.request_cancel(NS, job_id, now=at(2)) == first
            assert await ledger.events(job_id, after=0) == history

    @pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.UNCERTAIN])
    async def test_a_job_that_came_to_rest_otherwise_is_a_conflict(
        self, ledger: Ledger, state: JobState
    ) -> None:
        await running(ledger)
        before = await ledger.finish(finish(state), now=at(1))
        with pytest.raises(ConflictError):
            await ledger.request_cancel(NS, "j1", now=at(2))
        assert await ledger.job(NS, "j1") == before

    async def test_a_job_of_another_namespace_is_not_found(self, ledger: Ledger) -> None:
        await accepted(ledger)
        with pytest.raises(NotFoundError):
            await ledger.request_cancel(OTHER, "j1", now=T0)


class TestResolving:
    @pytest.mark.parametrize("to", [JobState.SUCCEEDED, JobState.FAILED])
    async def test_an_uncertain_job_is_ended_as_decided(self, ledger: Ledger, to: JobState) -> None:
        await running(ledger)
        failure = {"reason": "agent_lost"}
        doubtful = await ledger.finish(finish(JobState.UNCERTAIN, failure=failure), now=at(1))
        assert doubtful is not None
        assert (doubtful.failure, doubtful.finished_at) == (failure, None)
        job = await ledger.resolve(NS, "j1", to, now=at(5))
        assert (job.state, job.finished_at) == (to, at(5))
        assert job.failure == (None if to is JobState.SUCCEEDED else failure)
        assert await ledger.job(NS, "j1") == job

    async def test_an_uncertain_job_can_be_tried_again_at_once(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.request_cancel(NS, "j1", now=T0)
        await ledger.finish(finish(JobState.UNCERTAIN), now=at(1))
        job = await ledger.resolve(NS, "j1", JobState.QUEUED, now=at(5))
        assert (job.state, job.not_before, job.cancel_requested) == (JobState.QUEUED, at(5), False)
        assert await next_id(ledger, now=at(5)) == "j1"
        assert await started(ledger, "j1", "a2") is not None

    async def test_a_job_that_is_not_uncertain_is_a_conflict(self, ledger: Ledger) -> None:
        await running(ledger)
        with pytest.raises(ConflictError):
            await ledger.resolve(NS, "j1", JobState.FAILED, now=T0)

    async def test_a_job_that_is_not_ours_is_not_found(self, ledger: Ledger) -> None:
        await accepted(ledger)
        with pytest.raises(NotFoundError):
            await ledger.resolve(OTHER, "j1", JobState.FAILED, now=T0)
