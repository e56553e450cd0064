"""What the `JobRetention` port promises, of every implementation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import asyncpg
import pytest

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.core.retry import Doubt
from farm.errors import ConflictError, NotFoundError
from farm.stores.ledger import SqlLedger, SqlRetention, forgetting
from farm.stores.ledger.postgres import PostgresDatabase
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases
from tests.stores.ledger_rows import (
    HAR,
    NS,
    TOKEN,
    TRACE,
    accepted,
    artifact,
    at,
    effect,
    finish,
    items,
    running,
    said,
    started,
)

_HOLD = Doubt.HOLD
OTHER = Namespace("other")
S = JobState


@pytest.fixture
async def ledger(new_ledger: Callable[[], SqlLedger]) -> AsyncIterator[SqlLedger]:
    ledger = new_ledger()
    await ledger.open()
    yield ledger
    await ledger.close()


@pytest.fixture
def retention(ledger: SqlLedger) -> SqlRetention:
    return SqlRetention(ledger.database)


async def ended(ledger: SqlLedger, n: int, state: JobState = S.SUCCEEDED, *, after: int = 1) -> str:
    """A job with something of everything, that ended `after` seconds."""
    job_id, attempt_id = f"j{n}", f"a{n}"
    await running(ledger, job_id, attempt_id)
    told = [
        items(1, 2, attempt_id=attempt_id),
        said(2, effect_begun=effect(attempt_id=attempt_id)),
    ]
    await ledger.record(attempt_id, TOKEN, told, now=at(0))
    await ledger.add_artifact(artifact(job_id=job_id, attempt_id=attempt_id), TOKEN)
    assert await ledger.finish(finish(state, attempt_id), now=at(after)) is not None
    return job_id


async def there(ledger: SqlLedger, namespace: Namespace = NS) -> list[str]:
    found = await ledger.jobs(namespace, state=None, before=None, limit=100)
    return sorted(job.job_id for job in found)


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.CANCELLED, S.TIMED_OUT])
async def test_a_job_that_has_ended_is_deleted_with_all_there_is_of_it(
    ledger: SqlLedger, retention: SqlRetention, state: JobState
) -> None:
    await ended(ledger, 1, state)
    await ended(ledger, 2)
    await retention.delete(NS, "j1")
    assert await there(ledger) == ["j2"]
    with pytest.raises(NotFoundError):
        await ledger.attempt("a1")
    assert await ledger.events("j1", after=0) == []
    assert await ledger.effects("j1") == []
    assert await ledger.artifacts("j1") == []
    assert [item async for item in ledger.items("j1")] == []
    assert len([item async for item in ledger.items("j2")]) == 2
    assert len(await ledger.artifacts("j2")) == 1
    with pytest.raises(NotFoundError):
        await retention.delete(NS, "j1")
    await running(ledger, "j1", "a1")  # as if it had never been


async def test_what_has_not_ended_is_refused_and_so_is_what_is_uncertain(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    await accepted(ledger, "j0")
    await running(ledger, "j1", "a1")
    await ended(ledger, 2, S.UNCERTAIN)
    for job_id, state in (("j0", S.QUEUED), ("j1", S.RUNNING), ("j2", S.UNCERTAIN)):
        with pytest.raises(ConflictError) as refused:
            await retention.delete(NS, job_id)
        assert refused.value.context["state"] is state
    assert await there(ledger) == ["j0", "j1", "j2"]
    assert await retention.discarded(limit=9) == []


async def test_another_namespaces_job_is_not_found(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    await ended(ledger, 1)
    with pytest.raises(NotFoundError):
        await retention.delete(OTHER, "j1")
    assert await there(ledger) == ["j1"]


async def test_those_go_first_that_ended_first_and_no_more_than_may_at_once(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    for n, after in enumerate((5, 1, 4, 2, 3)):
        await ended(ledger, n, after=after)
    assert await retention.delete_ended(before=at(4), limit=2) == 2
    assert await there(ledger) == ["j0", "j2", "j4"]
    assert await retention.delete_ended(before=at(4), limit=2) == 2
    assert await retention.delete_ended(before=at(4), limit=2) == 0
    assert await there(ledger) == ["j0"]


async def test_a_job_with_many_rows_goes_in_a_transaction_of_its_own(
    ledger: SqlLedger, retention: SqlRetention, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, after in enumerate((1, 2, 3)):
        await ended(ledger, n, after=after)
    monkeypatch.setattr(forgetting, "_ROWS_AT_ONCE", 1)
    for left in (["j1", "j2"], ["j2"], []):
        assert await retention.delete_ended(before=at(9), limit=9) == 1
        assert await there(ledger) == left


async def test_what_waits_runs_or_is_uncertain_is_kept_however_old(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    await accepted(ledger, "j0")
    await running(ledger, "j1", "a1")
    await ended(ledger, 2, S.UNCERTAIN)
    assert await retention.delete_ended(before=at(1_000_000), limit=9) == 0
    await ledger.resolve(NS, "j2", S.FAILED, now=at(8))
    assert await retention.delete_ended(before=at(7), limit=9) == 0
    assert await retention.delete_ended(before=at(8), limit=9) == 1


async def test_a_job_that_is_run_again_is_old_when_it_has_ended_again(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    await running(ledger)
    await ledger.finish(finish(S.FAILED), now=at(1))
    await ledger.retry(NS, "j1", _HOLD, now=at(2))
    assert await retention.delete_ended(before=at(1_000), limit=9) == 0
    assert await started(ledger, "j1", "a2") is not None
    await ledger.finish(finish(S.FAILED, "a2"), now=at(9))
    assert await retention.delete_ended(before=at(8), limit=9) == 0
    assert await retention.delete_ended(before=at(9), limit=9) == 1


async def test_whose_files_are_to_go_is_known_until_they_have(
    new_ledger: Callable[[], SqlLedger],
) -> None:
    ledger = new_ledger()
    await ledger.open()
    for n in range(4):
        await ended(ledger, n)
    await SqlRetention(ledger.database).delete(NS, "j0")
    await SqlRetention(ledger.database).delete_ended(before=at(1), limit=1)
    await ledger.forget_jobs(NS)
    await ledger.close()

    again = new_ledger()
    await again.open()
    retention = SqlRetention(again.database)
    assert sorted(await retention.discarded(limit=9)) == ["j0", "j1", "j2", "j3"]
    assert len(await retention.discarded(limit=3)) == 3
    await retention.files_gone(["j0", "j3", "unknown"])
    assert sorted(await retention.discarded(limit=9)) == ["j1", "j2"]
    await retention.files_gone([])
    await again.close()


async def recorded_job(ledger: SqlLedger, n: int, *, made: int) -> None:
    """A job that runs, with a recording and another file."""
    job_id, attempt_id = f"j{n}", f"a{n}"
    await accepted(ledger, job_id)
    assert await started(ledger, job_id, attempt_id, recordings=(TRACE, HAR)) is not None
    file = replace(artifact(job_id=job_id, attempt_id=attempt_id), created_at=at(made))
    await ledger.add_artifact(file, TOKEN)
    await ledger.add_artifact(replace(file, recording="trace", key=f"{job_id}/trace"), TOKEN)


async def test_recordings_go_before_the_rest_of_their_jobs_once_these_have_ended(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    for n, (made, end) in enumerate(
        [(1, S.SUCCEEDED), (5, S.FAILED), (1, S.UNCERTAIN), (1, None), (2, S.FAILED)]
    ):
        await recorded_job(ledger, n, made=made)
        if end is not None:
            await ledger.finish(finish(end, f"a{n}", records=True), now=at(6))
    assert await retention.delete_recordings(before=at(2), limit=1) == 1
    assert await retention.delete_recordings(before=at(2), limit=9) == 1
    assert await retention.delete_recordings(before=at(2), limit=9) == 0
    assert sorted(await retention.discarded(limit=9)) == ["j0/trace", "j4/trace"]
    for n in range(5):
        names = {one.name for one in await ledger.artifacts(f"j{n}")}
        assert ("trace.zip" not in names) is (n in (0, 4))
        assert {"a.png", "a.har"} <= names  # the one that failed is still told of
        assert (await ledger.job(NS, f"j{n}")).artifact_count == (1 if n in (0, 4) else 2)
    assert await ledger.recordings_size(NS) == 3 * 12


async def test_of_several_at_once_each_job_is_deleted_by_one(
    ledger: SqlLedger, retention: SqlRetention
) -> None:
    for n in range(12):
        await ended(ledger, n)
    deleted = 0
    while await there(ledger):
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(retention.delete_ended(before=at(1), limit=5)) for _ in range(4)
            ]
        deleted += sum(task.result() for task in tasks)
    assert deleted == 12
    assert len(await retention.discarded(limit=99)) == 12


async def test_while_another_coordinator_is_at_it_nothing_is_done(postgres: Databases) -> None:
    url = postgres.new()
    ledger = SqlLedger(PostgresDatabase(url))
    await ledger.open()
    await ended(ledger, 1)
    retention = SqlRetention(ledger.database)
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT pg_advisory_lock(hashtext('tabfarm.retention'))")
    assert await retention.delete_ended(before=at(9), limit=9) == 0
    await connection.close()
    async with asyncio.timeout(PATIENCE_S):  # the server ends the session in its own time
        while not await retention.delete_ended(before=at(9), limit=9):
            await asyncio.sleep(0.02)
    assert await there(ledger) == []
    await ledger.close()
