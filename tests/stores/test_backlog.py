"""What the `Backlog` port promises, of every implementation."""

from collections.abc import Mapping

import pytest

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.stores.ledger import SqlBacklog, SqlLedger
from farm.stores.ports.backlog import Backlog
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import NS, T0, accepted, at, finish, new_job, running, said, started

OTHER = Namespace("other")


@pytest.fixture
def queue(ledger: Ledger) -> Backlog:
    assert isinstance(ledger, SqlLedger)
    return SqlBacklog(ledger.database)


async def found(queue: Backlog, *, first: int = 9) -> Mapping[str, tuple[int, list[str]]]:
    rows = await queue.queued(NS, first=first, now=T0)
    return {row.match_key: (row.count, [job.job_id for job in row.jobs]) for row in rows}


async def test_the_queue_is_told_by_match_key_the_oldest_first(
    ledger: Ledger, queue: Backlog
) -> None:
    for job_id, key in (("j1", "b"), ("j2", "a"), ("j3", "b"), ("j4", "b")):
        await accepted(ledger, job_id, match_key=key)
    await accepted(ledger, "j5", match_key="a", namespace=OTHER)
    assert list((await found(queue)).items()) == [
        ("b", (3, ["j1", "j3", "j4"])),
        ("a", (1, ["j2"])),
    ]
    assert await found(queue, first=1) == {"b": (3, ["j1"]), "a": (1, ["j2"])}
    assert await queue.counts_by_key(now=T0) == {"b": 3, "a": 2}


async def test_what_has_begun_ended_is_paused_or_not_due_is_not_in_the_queue(
    ledger: Ledger, queue: Backlog
) -> None:
    await running(ledger, "j1", "a1")
    for job_id in ("j2", "j3"):
        await accepted(ledger, job_id)
    await ledger.request_cancel(NS, "j2", now=T0)
    await ledger.hold_queued(NS, "j3", paused=True, by="anna", now=T0)
    assert await found(queue) == {}
    await ledger.hold_queued(NS, "j3", paused=False, by="anna", now=T0)
    assert await found(queue) == {"any": (1, ["j3"])}
    await ledger.finish(finish(JobState.QUEUED, not_before=at(5)), now=T0)
    assert await found(queue) == {"any": (1, ["j3"])}
    (row,) = await queue.queued(NS, first=9, now=at(5))
    assert [job.job_id for job in row.jobs] == ["j1", "j3"]


async def test_who_is_ahead_are_the_older_ones_that_ask_for_the_same(
    ledger: Ledger, queue: Backlog
) -> None:
    for job_id, key in (("j1", "b"), ("j2", "a"), ("j3", "b"), ("j4", "b")):
        await accepted(ledger, job_id, match_key=key)
    ahead = [
        await queue.ahead_of(await ledger.job(NS, job_id), now=T0)
        for job_id in ("j1", "j2", "j3", "j4")
    ]
    assert ahead == [0, 0, 1, 2]
    await started(ledger, "j1", "a1")
    assert await queue.ahead_of(await ledger.job(NS, "j4"), now=T0) == 1


async def test_match_keys_are_told_of_jobs_of_the_namespace(ledger: Ledger, queue: Backlog) -> None:
    await accepted(ledger, "j1", match_key="a")
    await accepted(ledger, "j2", match_key="b", namespace=OTHER)
    assert await queue.match_keys(NS, ["j1", "j2", "no job"]) == {"j1": "a"}
    assert await queue.match_keys(NS, []) == {}


async def test_durations_are_those_of_the_latest_that_succeeded_and_asked_for_the_same(
    ledger: Ledger, queue: Backlog
) -> None:
    for number, key in enumerate(("a", "a", "b", "a")):
        await accepted(ledger, f"j{number}", match_key=key)
        assert await started(ledger, f"j{number}", f"a{number}", now=at(10)) is not None
    for number in range(3):
        end = finish(attempt_id=f"a{number}")
        await ledger.finish(end, now=at(11 + number))
    await ledger.finish(finish(JobState.FAILED, attempt_id="a3"), now=at(90))
    job, _ = await ledger.accept(new_job("new", match_key="a"), now=T0)
    assert await queue.durations_s(job, latest=5) == [2.0, 1.0]
    assert await queue.durations_s(job, latest=1) == [2.0]
    stranger, _ = await ledger.accept(new_job("x", match_key="a", namespace=OTHER), now=T0)
    assert await queue.durations_s(stranger, latest=5) == []


async def test_the_step_that_a_running_attempt_is_on_is_told(
    ledger: Ledger, queue: Backlog
) -> None:
    for number in (1, 2, 3):
        attempt = await running(ledger, f"j{number}", f"a{number}")
        for index in range(number - 1):
            step = {"index": index, "verb": "goto", "label": f"{index}"}
            evidence = [said(index + 1, "step_started", data=step)]
            await ledger.record(attempt.attempt_id, attempt.token, evidence, now=T0)
    await accepted(ledger, "j4")
    now = await queue.steps_now(["j1", "j2", "j3", "j4", "none"])
    assert {job_id: step["label"] for job_id, step in now.items()} == {"j2": "0", "j3": "1"}
    assert list(await queue.steps_now(["j3"])) == ["j3"]
    await ledger.finish(finish(JobState.QUEUED, "a3"), now=T0)
    assert list(await queue.steps_now(["j2", "j3"])) == ["j2"]
    await started(ledger, "j3", "a4")
    assert list(await queue.steps_now(["j3"])) == []
