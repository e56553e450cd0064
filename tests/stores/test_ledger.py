"""What the `Ledger` port promises about jobs and tokens, of every implementation."""

import asyncio
from collections.abc import Callable

import pytest

from farm.core.job_states import JobState
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_queue import NONE, next_id, next_start
from tests.stores.ledger_rows import (
    NS,
    OTHER,
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


class TestTokens:
    async def test_a_token_is_found_by_its_hash_until_revoked(self, ledger: Ledger) -> None:
        token = token_record()
        await ledger.add_token(token)
        await ledger.add_token(token_record("t2"))
        assert await ledger.token("sha-t1") == token
        assert await ledger.token("sha-t3") is None
        assert [one.token_id for one in await ledger.tokens(namespace=NS)] == ["t1", "t2"]
        assert await ledger.tokens(namespace=OTHER) == []
        await ledger.revoke_token("t1", now=at(1))
        await ledger.revoke_token("t1", now=at(2))
        assert await ledger.token("sha-t1") is None
        assert await ledger.token("sha-t2") is not None
        assert [one.token_id for one in await ledger.tokens()] == ["t2"]

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
