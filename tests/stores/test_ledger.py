"""What the `Ledger` port promises about jobs and attempts, of every implementation."""

import asyncio
from collections.abc import Callable

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import Instant, Namespace, Token
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import (
    NS,
    T0,
    TOKEN,
    accepted,
    artifact,
    at,
    effect,
    finish,
    items,
    new_job,
    running,
    said,
    started,
    token_record,
)

OTHER = Namespace("other")
NONE: frozenset[str] = frozenset()


async def next_id(
    ledger: Ledger,
    *,
    now: Instant = T0,
    keys: frozenset[str] = NONE,
    jobs: frozenset[str] = NONE,
) -> str | None:
    due = await ledger.due(now=now, without_keys=keys, without_jobs=jobs, limit=1)
    return due.jobs[0].job_id if due.jobs else None


async def next_start(ledger: Ledger, *, now: Instant) -> Instant | None:
    return (await ledger.due(now=now, without_keys=NONE, without_jobs=NONE, limit=1)).next_start


class TestOpening:
    async def test_each_start_has_the_next_number(self, new_ledger: Callable[[], Ledger]) -> None:
        numbers = []
        for _ in range(3):
            ledger = new_ledger()
            numbers.append(await ledger.open())
            await ledger.close()
        assert numbers == [1, 2, 3]

    async def test_what_was_written_is_there_after_closing_and_opening(
        self, new_ledger: Callable[[], Ledger]
    ) -> None:
        ledger = new_ledger()
        await ledger.open()
        await running(ledger)
        await ledger.record("a1", TOKEN, [said(1), items(2, 3)], now=T0)
        before = await ledger.job(NS, "j1")
        await ledger.close()

        again = new_ledger()
        await again.open()
        assert await again.job(NS, "j1") == before
        assert len([item async for item in again.items("j1")]) == 3
        assert [a.attempt_id for a in await again.running_attempts()] == ["a1"]
        await again.close()

    async def test_a_closed_ledger_says_so_and_does_not_look_empty(
        self, new_ledger: Callable[[], Ledger]
    ) -> None:
        ledger = new_ledger()
        with pytest.raises(StoreUnavailableError):
            await ledger.check()
        with pytest.raises(StoreUnavailableError):
            await ledger.counts()
        await ledger.open()
        await ledger.close()
        with pytest.raises(StoreUnavailableError):
            await ledger.accept(new_job(), now=T0)


class TestAccepting:
    async def test_an_accepted_job_is_queued_and_reads_back_as_returned(
        self, ledger: Ledger
    ) -> None:
        job, duplicate = await ledger.accept(new_job(spec={"name": "ä\ud800", "n": 1.5}), now=T0)
        assert not duplicate
        assert job.state is JobState.QUEUED
        assert (job.created_at, job.not_before, job.attempts) == (T0, T0, 0)
        assert await ledger.job(NS, "j1") == job

    async def test_one_key_and_body_is_one_job(self, ledger: Ledger) -> None:
        first, _ = await ledger.accept(new_job("j1", idempotency_key="k"), now=T0)
        second, duplicate = await ledger.accept(new_job("j2", idempotency_key="k"), now=at(9))
        assert duplicate
        assert second == first

    async def test_a_duplicate_is_told_what_has_become_of_its_job(self, ledger: Ledger) -> None:
        await accepted(ledger, idempotency_key="k")
        await started(ledger)
        await ledger.finish(finish(), now=at(1))
        job, duplicate = await ledger.accept(new_job("j2", idempotency_key="k"), now=at(2))
        assert duplicate
        assert job.state is JobState.SUCCEEDED

    async def test_one_key_with_another_body_is_a_conflict_and_adds_nothing(
        self, ledger: Ledger
    ) -> None:
        await accepted(ledger, idempotency_key="k")
        with pytest.raises(ConflictError):
            await ledger.accept(new_job("j2", idempotency_key="k", body_hash="other"), now=T0)
        assert (await ledger.counts())[JobState.QUEUED] == 1

    async def test_a_key_belongs_to_its_namespace(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1", idempotency_key="k")
        _, duplicate = await ledger.accept(
            new_job("j2", idempotency_key="k", namespace=OTHER, body_hash="other"), now=T0
        )
        assert not duplicate

    async def test_jobs_without_a_key_are_never_one(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await accepted(ledger, "j2")
        assert (await ledger.counts())[JobState.QUEUED] == 2

    async def test_fifty_at_once_with_one_key_are_one_job(self, ledger: Ledger) -> None:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    ledger.accept(new_job(f"j{n}", idempotency_key="k"), now=T0), name=f"accept-{n}"
                )
                for n in range(50)
            ]
        answers = [task.result() for task in asked]
        assert len({job.job_id for job, _ in answers}) == 1
        assert sum(not duplicate for _, duplicate in answers) == 1
        assert len(await ledger.jobs(NS, state=None, before=None, limit=100)) == 1


class TestFinding:
    async def test_a_job_is_found_with_what_has_happened_to_it(self, ledger: Ledger) -> None:
        await running(ledger)
        record = await ledger.record_of(NS, "j1", events=1)
        assert record.job == await ledger.job(NS, "j1")
        assert record.attempts == await ledger.attempts("j1")
        assert record.events == (await ledger.events("j1", after=0))[:1]
        with pytest.raises(NotFoundError):
            await ledger.record_of(OTHER, "j1", events=1)

    async def test_a_job_that_is_not_there_or_not_ours_is_not_found(self, ledger: Ledger) -> None:
        await accepted(ledger, namespace=OTHER)
        for job_id in ("j1", "j2"):
            with pytest.raises(NotFoundError):
                await ledger.job(NS, job_id)

    async def test_jobs_come_newest_first_and_in_pages(self, ledger: Ledger) -> None:
        for n in range(5):
            await accepted(ledger, f"j{n}")
        await accepted(ledger, "x", namespace=OTHER)
        first = await ledger.jobs(NS, state=None, before=None, limit=2)
        second = await ledger.jobs(NS, state=None, before=first[-1].job_id, limit=9)
        assert [job.job_id for job in first] == ["j4", "j3"]
        assert [job.job_id for job in second] == ["j2", "j1", "j0"]

    async def test_jobs_can_be_asked_for_by_state(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await running(ledger, "j2", "a2")
        found = await ledger.jobs(NS, state=JobState.RUNNING, before=None, limit=9)
        assert [job.job_id for job in found] == ["j2"]

    async def test_counts_name_every_state(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await accepted(ledger, "j2", namespace=OTHER)
        await running(ledger, "j3", "a3")
        counts = await ledger.counts()
        assert set(counts) == set(JobState)
        assert (counts[JobState.QUEUED], counts[JobState.RUNNING]) == (2, 1)
        assert sum(counts.values()) == 3

    async def test_an_attempt_that_is_not_there_is_not_found(self, ledger: Ledger) -> None:
        with pytest.raises(NotFoundError):
            await ledger.attempt("a1")
        with pytest.raises(NotFoundError):
            await ledger.job_of_attempt("a1")

    async def test_an_attempt_leads_to_its_job_in_whatever_namespace(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await accepted(ledger, "j2", namespace=OTHER)
        await started(ledger, "j2", "a2")
        assert await ledger.job_of_attempt("a2") == await ledger.job(OTHER, "j2")


class TestQueue:
    async def test_the_oldest_queued_job_is_next(self, ledger: Ledger) -> None:
        for job_id in ("b", "a", "c"):
            await accepted(ledger, job_id)
        assert await next_id(ledger) == "b"
        await started(ledger, "b")
        assert await next_id(ledger) == "a"

    async def test_match_keys_and_jobs_that_are_named_are_passed_over(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1", match_key="eu")
        await accepted(ledger, "j2", match_key="us")
        await accepted(ledger, "j3", match_key="us")
        assert await next_id(ledger, keys=frozenset({"eu"})) == "j2"
        assert await next_id(ledger, keys=frozenset({"eu"}), jobs=frozenset({"j2"})) == "j3"
        assert await next_id(ledger, keys=frozenset({"eu", "us"})) is None

    async def test_as_many_as_are_asked_for_are_due_oldest_first(self, ledger: Ledger) -> None:
        for job_id in ("j1", "j2", "j3"):
            await accepted(ledger, job_id)
        due = await ledger.due(now=T0, without_keys=NONE, without_jobs=NONE, limit=2)
        assert [job.job_id for job in due.jobs] == ["j1", "j2"]

    async def test_a_job_that_has_to_wait_is_not_next_before_its_time(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.finish(finish(JobState.QUEUED, not_before=at(10)), now=at(1))
        assert await next_id(ledger, now=at(9.9)) is None
        assert await next_start(ledger, now=at(9.9)) == at(10)
        assert await next_id(ledger, now=at(10)) == "j1"
        assert await next_start(ledger, now=at(10)) is None

    async def test_the_next_start_is_the_earliest_of_queued_jobs_only(self, ledger: Ledger) -> None:
        for n, wait in enumerate((30, 20, 10)):
            await running(ledger, f"j{n}", f"a{n}")
            await ledger.finish(finish(JobState.QUEUED, f"a{n}", not_before=at(wait)), now=at(1))
        await ledger.request_cancel(NS, "j2", now=at(2))
        assert await next_start(ledger, now=at(2)) == at(20)

    async def test_nothing_is_next_in_an_empty_ledger(self, ledger: Ledger) -> None:
        assert await next_id(ledger) is None
        assert await next_start(ledger, now=T0) is None


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


class TestTokens:
    async def test_a_token_is_found_by_its_hash_until_revoked(self, ledger: Ledger) -> None:
        token = token_record()
        await ledger.add_token(token)
        await ledger.add_token(token_record("t2"))
        assert await ledger.token("sha-t1") == token
        assert await ledger.token("sha-t3") is None
        await ledger.revoke_token("t1", now=at(1))
        await ledger.revoke_token("t1", now=at(2))
        assert await ledger.token("sha-t1") is None
        assert await ledger.token("sha-t2") is not None

    async def test_a_token_that_is_not_there_cannot_be_revoked(self, ledger: Ledger) -> None:
        await ledger.add_token(token_record())
        with pytest.raises(NotFoundError):
            await ledger.revoke_token("t2", now=T0)
        assert await ledger.token("sha-t1") is not None


class TestForgetting:
    async def test_jobs_that_have_ended_are_forgotten_with_all_there_is_of_them(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        await ledger.record(
            "a1", TOKEN, [items(1, 2), said(2, "effect_begun", effect_begun=effect())], now=T0
        )
        await ledger.add_artifact(artifact(), TOKEN)
        await ledger.finish(finish(), now=at(1))
        assert await ledger.forget_jobs(NS) == 1
        with pytest.raises(NotFoundError):
            await ledger.job(NS, "j1")
        with pytest.raises(NotFoundError):
            await ledger.attempt("a1")
        assert await ledger.events("j1", after=0) == []
        assert await ledger.effects("j1") == []
        assert await ledger.artifacts("j1") == []
        assert await ledger.forget_jobs(NS) == 0
        # The key is free again.
        await accepted(ledger)

    async def test_what_has_not_ended_and_what_is_of_others_stays(self, ledger: Ledger) -> None:
        await running(ledger)
        await accepted(ledger, "j2", namespace=OTHER)
        await ledger.request_cancel(OTHER, "j2", now=T0)
        assert await ledger.forget_jobs(NS) == 0
        assert (await ledger.job(NS, "j1")).state is JobState.RUNNING
        assert (await ledger.job(OTHER, "j2")).state is JobState.CANCELLED
