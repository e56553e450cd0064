"""What the `Ledger` port promises about turns, of every implementation."""

from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.stores.ledger import SqliteDatabase, SqlLedger, queue
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import NS, T0, accepted, at, finish, started

QUIET = Namespace("quiet")
NONE: frozenset[str] = frozenset()


async def next_ids(
    ledger: Ledger,
    limit: int,
    *,
    keys: frozenset[str] = NONE,
    jobs: frozenset[str] = NONE,
    served: tuple[Namespace, ...] = (),
) -> list[str]:
    due = await ledger.due(now=T0, without_keys=keys, without_jobs=jobs, served=served, limit=limit)
    return [job.job_id for job in due.jobs]


async def backlog(ledger: Ledger, namespace: Namespace, jobs: int, kind: str = "any") -> None:
    for number in range(1, jobs + 1):
        key = f"{namespace} {kind}"
        await accepted(ledger, f"{namespace}-{number}", namespace=namespace, match_key=key)


async def test_namespaces_take_turns_however_much_one_has_queued(ledger: Ledger) -> None:
    await backlog(ledger, NS, 5)
    await backlog(ledger, QUIET, 2)
    assert await next_ids(ledger, 3) == ["default-1", "quiet-1", "default-2"]
    begun = []
    for number in range(6):
        (job_id,) = await next_ids(ledger, 1)
        await started(ledger, job_id, f"a{number}")
        begun.append(job_id)
    assert begun == [
        *("default-1", "quiet-1", "default-2", "quiet-2"),
        *("default-3", "default-4"),
    ]


async def test_who_comes_later_need_not_wait_for_the_backlog_of_who_came_before(
    ledger: Ledger,
) -> None:
    await backlog(ledger, NS, 5)
    await started(ledger, "default-1")
    await backlog(ledger, QUIET, 1)
    assert await next_ids(ledger, 1) == ["quiet-1"]


async def test_who_is_being_served_is_last(ledger: Ledger) -> None:
    await backlog(ledger, NS, 2)
    await backlog(ledger, QUIET, 2)
    first = frozenset({"default-1"})
    assert await next_ids(ledger, 2, jobs=first, served=(NS,)) == ["quiet-1", "default-2"]


async def test_a_namespace_of_which_nothing_may_start_takes_no_turn(ledger: Ledger) -> None:
    await backlog(ledger, NS, 3)
    await backlog(ledger, QUIET, 3)
    blocked = frozenset({"default any"})
    assert await next_ids(ledger, 2, keys=blocked) == ["quiet-1", "quiet-2"]


async def test_within_a_namespace_the_oldest_is_first_whatever_its_kind(ledger: Ledger) -> None:
    for number, kind in enumerate("zazbazb"):
        await accepted(ledger, f"j{number}", match_key=kind)
    assert await next_ids(ledger, 4) == ["j0", "j1", "j2", "j3"]
    assert await next_ids(ledger, 4, keys=frozenset({"z"})) == ["j1", "j3", "j4", "j6"]


async def test_a_job_that_waits_for_its_time_holds_up_none_of_its_kind(ledger: Ledger) -> None:
    await backlog(ledger, NS, 2)
    await started(ledger, "default-1")
    await ledger.finish(finish(JobState.QUEUED, not_before=at(50)), now=at(1))
    assert await next_ids(ledger, 2) == ["default-2"]


async def test_turns_are_remembered_by_the_next_life_of_the_farm(ledger: Ledger) -> None:
    assert isinstance(ledger, SqlLedger)
    await backlog(ledger, NS, 2)
    await backlog(ledger, QUIET, 2)
    await started(ledger, "default-1")
    await ledger.close()
    await ledger.open()
    assert await next_ids(ledger, 1) == ["quiet-1"]


BACKLOGS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1)


@given(BACKLOGS, st.integers(1, 5), st.data())
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.filterwarnings("ignore::pytest.PytestWarning")
async def test_at_most_one_job_of_another_starts_between_two_of_one_that_has_work(
    tmp_path_factory: pytest.TempPathFactory,
    backlogs: dict[str, int],
    limit: int,
    data: st.DataObject,
) -> None:
    """Whatever is read at once, and however much of that is begun before it is read again."""
    ledger = SqlLedger(SqliteDatabase(tmp_path_factory.mktemp("turns") / "farm.db"))
    await ledger.open()
    for name, jobs in backlogs.items():
        await backlog(ledger, Namespace(name), jobs)
    numbers, begun = count(1), list[str]()
    while jobs_now := await next_ids(ledger, limit):
        for job_id in jobs_now[: data.draw(st.integers(1, limit), label="begun")]:
            await started(ledger, job_id, f"a{next(numbers)}")
            begun.append(job_id[0])
    await ledger.close()
    assert Counter(begun) == backlogs
    for name in backlogs:
        places = [place for place, one in enumerate(begun) if one == name]
        for place, following in pairwise(places):
            assert max(Counter(begun[place + 1 : following]).values(), default=0) <= 1


async def test_no_backlog_is_read_to_find_what_is_next(tmp_path: Path) -> None:
    """Nothing of what SQLite does for it is a look through the jobs."""
    database = SqliteDatabase(tmp_path / "farm.db")
    ledger = SqlLedger(database)
    await ledger.open()
    await backlog(ledger, NS, 3)
    await backlog(ledger, QUIET, 3)
    plans: list[str] = []

    def explained(db: Connection) -> None:
        @event.listens_for(db, "before_cursor_execute")
        def explain(*said: Any) -> None:
            _, cursor, statement, parameters, *_ = said
            plans.extend(
                row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            )

        try:
            without = queue.Without(keys=NONE, jobs=frozenset({"quiet-1"}))
            queue.due(db, at(0), without, (), 3)
        finally:
            event.remove(db, "before_cursor_execute", explain)

    await database.read(explained)
    await ledger.close()
    of_jobs = [step for step in plans if " jobs" in step]
    assert len(of_jobs) >= 5
    indices = ("ix_jobs_waiting", "ix_jobs_next_start", "INTEGER PRIMARY KEY")
    assert all(step.startswith("SEARCH") for step in of_jobs), "\n".join(plans)
    assert all(any(index in step for index in indices) for step in of_jobs), "\n".join(plans)
