"""Any order of calls: what the ledger says is what a few dictionaries say."""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from farm.core.job_states import TERMINAL, JobState
from farm.core.model import Token
from farm.core.retry import Doubt
from farm.errors import ConflictError
from farm.stores.ledger import SqliteDatabase, SqlLedger, SqlRetention
from farm.stores.ledger.database import Database
from farm.stores.ledger.postgres import PostgresDatabase
from tests.stores.conftest import Databases
from tests.stores.ledger_rows import NS, at, finish, items, new_job, started

S = JobState
T = TypeVar("T")
ENDS = st.sampled_from([S.SUCCEEDED, S.FAILED, S.QUEUED, S.TIMED_OUT, S.UNCERTAIN, S.CANCELLED])


@dataclass
class ModelAttempt:
    attempt_id: str
    token: Token
    running: bool = True
    succeeded: bool = False
    last_seq: int = 0


@dataclass
class ModelJob:
    state: JobState = S.QUEUED
    counted: int = 0
    free: int = 0
    not_before: float = 0.0
    attempts: list[ModelAttempt] = field(default_factory=list)

    def shown(self) -> int:
        """How many items count; one an entry."""
        if not self.attempts:
            return 0
        if self.attempts[-1].succeeded:
            return self.attempts[-1].last_seq
        return max(a.last_seq for a in self.attempts)


class LedgerMachine(RuleBasedStateMachine):
    """Drives a ledger and a model of it side by side."""

    ledger: SqlLedger

    @initialize()
    def open(self) -> None:
        self.new_database = self.database_maker()
        self.runner = asyncio.Runner()
        self.jobs: dict[str, ModelJob] = {}
        self.keys: dict[str, tuple[str, str]] = {}
        self.clock = 0
        self.attempt_count = self.job_count = 0
        self.opened = 0
        self.reopen()

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.ledger.close())
            self.runner.close()

    def database_maker(self) -> Callable[[], Database]:
        """Return what makes databases over the same, empty data."""
        raise NotImplementedError

    def call(self, awaitable: Any) -> Any:
        self.clock += 1
        return self.runner.run(awaitable)

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.jobs)), label="job")

    @rule(key=st.none() | st.sampled_from("kl"), body=st.sampled_from("xy"))
    def accept(self, key: str | None, body: str) -> None:
        job_id = f"j{self.job_count}"
        new = new_job(job_id, idempotency_key=key, body_hash=body)
        known = self.keys.get(key) if key is not None else None
        try:
            job, duplicate = self.call(self.ledger.accept(new, now=at(self.clock)))
        except ConflictError:
            assert known is not None
            assert known[1] != body
            return
        assert duplicate == (known is not None)
        if known is not None:
            assert (job.job_id, body) == known
            return
        self.job_count += 1
        self.jobs[job_id] = ModelJob(not_before=at(self.clock - 1))
        if key is not None:
            self.keys[key] = (job_id, body)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        job_id = self.pick(data)
        job = self.jobs[job_id]
        self.attempt_count += 1
        attempt_id = f"a{self.attempt_count}"
        token = Token(store_epoch=self.opened, counter=self.attempt_count)
        attempt = self.call(started(self.ledger, job_id, attempt_id, token=token))
        assert (attempt is not None) == (job.state is S.QUEUED)
        if attempt is not None:
            job.state = S.RUNNING
            job.attempts.append(ModelAttempt(attempt_id, token))
            assert attempt.number == len(job.attempts)

    @precondition(lambda self: any(j.attempts for j in self.jobs.values()))
    @rule(data=st.data(), stale=st.booleans(), first=st.integers(1, 6), count=st.integers(0, 4))
    def record(self, data: st.DataObject, stale: bool, first: int, count: int) -> None:
        attempt = self.pick_attempt(data)
        token = Token(store_epoch=0, counter=0) if stale else attempt.token
        batch = [
            items(seq, 1, first=seq, attempt_id=attempt.attempt_id)
            for seq in range(first, first + count)
        ]
        last = self.call(self.ledger.record(attempt.attempt_id, token, batch, now=at(self.clock)))
        if stale or not attempt.running:
            assert last is None
            return
        if first <= attempt.last_seq + 1:
            attempt.last_seq = max(attempt.last_seq, first + count - 1)
        assert last == attempt.last_seq

    @precondition(lambda self: any(j.attempts for j in self.jobs.values()))
    @rule(data=st.data(), to=ENDS, counts=st.booleans(), wait=st.integers(0, 5))
    def finish(self, data: st.DataObject, to: JobState, counts: bool, wait: int) -> None:
        attempt = self.pick_attempt(data)
        job = next(j for j in self.jobs.values() if attempt in j.attempts)
        end = finish(to, attempt.attempt_id, counts=counts, not_before=at(self.clock + wait))
        result = self.call(self.ledger.finish(end, now=at(self.clock)))
        assert (result is not None) == attempt.running
        if result is None:
            return
        attempt.running = False
        attempt.succeeded = to is S.SUCCEEDED
        job.counted += counts
        job.free += not counts
        if job.state is S.CANCELLING and to in (S.QUEUED, S.TIMED_OUT):
            to = S.CANCELLED
        if to is S.QUEUED:
            job.not_before = end.not_before
        job.state = to
        assert result.state is to

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job_id = self.pick(data)
        job = self.jobs[job_id]
        expected = {S.QUEUED: S.CANCELLED, S.RUNNING: S.CANCELLING}
        try:
            self.call(self.ledger.request_cancel(NS, job_id, now=at(self.clock)))
        except ConflictError:
            assert job.state in (TERMINAL | {S.UNCERTAIN}) - {S.CANCELLED}
            return
        assert job.state in (S.QUEUED, S.RUNNING, S.CANCELLING, S.CANCELLED)
        job.state = expected.get(job.state, job.state)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), to=st.sampled_from([S.SUCCEEDED, S.FAILED, S.QUEUED]))
    def resolve(self, data: st.DataObject, to: JobState) -> None:
        job_id = self.pick(data)
        job = self.jobs[job_id]
        now = at(self.clock)
        try:
            self.call(self.ledger.resolve(NS, job_id, to, now=now))
        except ConflictError:
            assert job.state is not S.UNCERTAIN
            return
        assert job.state is S.UNCERTAIN
        job.state = to
        if to is S.QUEUED:
            job.not_before = now

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        job_id = self.pick(data)
        job = self.jobs[job_id]
        now = at(self.clock)
        try:
            self.call(self.ledger.retry(NS, job_id, Doubt.HOLD, now=now))
        except ConflictError:
            assert job.state in (S.SUCCEEDED, S.UNCERTAIN, S.CANCELLING)
            return
        if job.state in (S.QUEUED, S.RUNNING):
            return
        assert job.state in TERMINAL - {S.SUCCEEDED}
        job.state, job.counted, job.free, job.not_before = S.QUEUED, 0, 0, now

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        job_id = self.pick(data)
        state = self.jobs[job_id].state
        try:
            self.call(SqlRetention(self.ledger.database).delete(NS, job_id))
        except ConflictError:
            assert state not in TERMINAL
            return
        assert state in TERMINAL
        del self.jobs[job_id]
        self.keys = {key: known for key, known in self.keys.items() if known[0] != job_id}

    @rule()
    def reopen(self) -> None:
        if self.opened:
            self.runner.run(self.ledger.close())
        self.ledger = SqlLedger(self.new_database())
        self.opened += 1
        assert self.runner.run(self.ledger.open()) == self.opened

    def pick_attempt(self, data: st.DataObject) -> ModelAttempt:
        every = [a for job in self.jobs.values() for a in job.attempts]
        return data.draw(st.sampled_from(every), label="attempt")

    @invariant()
    def jobs_are_as_the_model_says(self) -> None:
        if not hasattr(self, "runner"):
            return
        found = self.call(self.ledger.jobs(NS, state=None, before=None, limit=1000))
        assert {
            j.job_id: (j.state, j.attempts, j.free_losses, j.item_count, j.finished_at is not None)
            for j in found
        } == {
            job_id: (j.state, j.counted, j.free, j.shown(), j.state in TERMINAL)
            for job_id, j in self.jobs.items()
        }

    @invariant()
    def a_running_job_has_exactly_one_running_attempt_and_others_none(self) -> None:
        if not hasattr(self, "runner"):
            return
        running = [a.job_id for a in self.call(self.ledger.running_attempts())]
        assert sorted(running) == sorted(
            job_id for job_id, j in self.jobs.items() if j.state in (S.RUNNING, S.CANCELLING)
        )

    @invariant()
    def the_next_job_is_the_oldest_that_may_start(self) -> None:
        if not hasattr(self, "runner"):
            return
        now = at(self.clock)
        due = self.call(
            self.ledger.due(now=now, without_keys=frozenset(), without_jobs=frozenset(), limit=2)
        )
        expected = [
            job_id for job_id, j in self.jobs.items() if j.state is S.QUEUED and j.not_before <= now
        ]
        assert [job.job_id for job in due.jobs] == expected[:2]

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def read_items_and_history(self, data: st.DataObject) -> None:
        job_id = self.pick(data)

        async def read() -> tuple[int, list[int]]:
            events = await self.ledger.events(job_id, after=0)
            counted = [item async for item in self.ledger.items(job_id)]
            return len(counted), [e.seq for e in events]

        count, numbers = self.call(read())
        assert count == self.jobs[job_id].shown()
        assert numbers == list(range(1, len(numbers) + 1))


class SqliteMachine(LedgerMachine):
    def database_maker(self) -> Callable[[], Database]:
        self.directory = tempfile.TemporaryDirectory()
        path = Path(self.directory.name) / "farm.db"
        return lambda: SqliteDatabase(path)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "directory"):
            self.directory.cleanup()


_SETTINGS = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSqliteLedger = SqliteMachine.TestCase
TestSqliteLedger.settings = _SETTINGS


def test_on_postgres_too(postgres: Databases) -> None:
    class PostgresMachine(LedgerMachine):
        def database_maker(self) -> Callable[[], Database]:
            url = postgres.new()
            return lambda: PostgresDatabase(url)

    run_state_machine_as_test(PostgresMachine, settings=_SETTINGS)
