"""What is PostgreSQL's own; what every ledger does is in `test_ledger`."""

import asyncio
import contextlib
import socket as tcp
from collections.abc import AsyncIterator
from itertools import count
from socket import IPPROTO_TCP
from typing import Any

import pytest
from sqlalchemy import Connection, make_url, text

from farm.core.job_states import JobState
from farm.errors import ConflictError, InvalidInputError, StoreUnavailableError
from farm.stores.ledger import SqlLedger
from farm.stores.ledger import postgres as of_postgres
from farm.stores.ledger.postgres import PostgresDatabase
from farm.stores.ledger.session import SILENCE_S
from tests.cable import Cable
from tests.patience import PATIENCE_S
from tests.stores import postgres_server
from tests.stores.conftest import Databases
from tests.stores.ledger_rows import NS, T0, accepted, at, new_job, started


@pytest.fixture
def url(postgres: Databases) -> str:
    return postgres.new()


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[SqlLedger]:
    ledger = SqlLedger(PostgresDatabase(url))
    await ledger.open()
    yield ledger
    await ledger.close()


def end_sessions(postgres: Databases, url: str, which: str) -> None:
    """End the server's side of sessions of a database."""
    name = make_url(url).database
    postgres.server.sql(
        "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a"
        f" WHERE a.datname = '{name}' AND {which}"
    )


HOLDING = "EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory')"


def holders(postgres: Databases, url: str) -> int:
    name = make_url(url).database
    return int(
        postgres.server.sql(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            f" WHERE l.locktype = 'advisory' AND d.datname = '{name}'"
        )
    )


async def test_another_farm_is_kept_out_while_one_is_there(ledger: SqlLedger, url: str) -> None:
    other = SqlLedger(PostgresDatabase(url))
    with pytest.raises(ConflictError, match="another farm is running on postgresql://"):
        await other.open()
    await accepted(ledger, "j1")
    await ledger.close()
    assert await other.open() == 2
    assert (await other.job(NS, "j1")).state is JobState.QUEUED
    await other.close()


async def test_a_farm_that_loses_its_hold_takes_it_again(
    ledger: SqlLedger, postgres: Databases, url: str
) -> None:
    numbers = count()
    end_sessions(postgres, url, HOLDING)
    async with asyncio.timeout(PATIENCE_S):
        while not holders(postgres, url):
            with contextlib.suppress(StoreUnavailableError):
                await accepted(ledger, f"j{next(numbers)}")
    other = SqlLedger(PostgresDatabase(url))
    with pytest.raises(ConflictError):
        await other.open()
    await accepted(ledger, "later")


async def test_a_farm_that_lost_its_hold_to_another_writes_nothing_more(
    ledger: SqlLedger, postgres: Databases, url: str
) -> None:
    end_sessions(postgres, url, HOLDING)
    other = SqlLedger(PostgresDatabase(url))
    async with asyncio.timeout(PATIENCE_S):
        while True:  # until the server has let go of the ended session's lock
            try:
                await other.open()
                break
            except ConflictError:
                other = SqlLedger(PostgresDatabase(url))
    with pytest.raises(StoreUnavailableError, match="another session has it"):
        await accepted(ledger, "j1")
    await other.close()
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="another farm has had the ledger"):
            await accepted(ledger, "j1")
    assert await ledger.jobs(NS, state=None, before=None, limit=10) == []


@pytest.fixture
async def cable(postgres: Databases) -> AsyncIterator[Cable]:
    async with Cable(postgres.server.folder / ".s.PGSQL.5432").laid() as cable:
        yield cable


def by(cable: Cable, url: str) -> str:
    """The URL of the same database by the cable."""
    return f"postgresql://postgres@127.0.0.1:{cable.port}/{make_url(url).database}"


async def test_a_farm_that_was_not_told_that_it_lost_its_hold_to_another_writes_nothing_either(
    postgres: Databases, url: str, cable: Cable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_postgres, "_STATEMENT_S", 0.5)
    ledger = SqlLedger(PostgresDatabase(by(cable, url)))
    await ledger.open()
    cable.lose()
    end_sessions(postgres, url, HOLDING)
    other = SqlLedger(PostgresDatabase(url))
    await other.open()
    await other.close()
    with pytest.raises(StoreUnavailableError, match="the ledger failed"):
        await accepted(ledger, "j1")  # by a session of before
    with pytest.raises(StoreUnavailableError, match="another farm has had the ledger"):
        await accepted(ledger, "j1")
    await ledger.close()


async def test_a_session_of_which_nothing_is_heard_ends_before_the_server_ends_it(
    url: str, cable: Cable
) -> None:
    database = PostgresDatabase(by(cable, url))
    await database.open()
    hold = database._hold._connection
    assert hold is not None
    session: Any = (await hold.get_raw_connection()).driver_connection
    socket = session._transport.get_extra_info("socket")
    told = {
        name: socket.getsockopt(IPPROTO_TCP, getattr(tcp, name))
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    }
    assert socket.getsockopt(tcp.SOL_SOCKET, tcp.SO_KEEPALIVE)
    ends_s = told["TCP_KEEPIDLE"] + told["TCP_KEEPINTVL"] * told["TCP_KEEPCNT"]
    assert ends_s == SILENCE_S < int(of_postgres._SETTINGS["tcp_keepalives_idle"])
    await database.close()


async def test_after_kill_9_of_the_server_what_was_stored_is_there_and_the_ledger_goes_on() -> None:
    with postgres_server.running() as server:
        ledger = SqlLedger(PostgresDatabase(server.url("postgres")))
        await ledger.open()
        for number in range(20):
            await accepted(ledger, f"j{number}")
        server.kill()
        with pytest.raises(StoreUnavailableError):
            await accepted(ledger, "lost")
        with pytest.raises(StoreUnavailableError):
            await ledger.counts()
        server.start()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await accepted(ledger, "later")
                    break
                except StoreUnavailableError:
                    await asyncio.sleep(0.05)
        found = await ledger.jobs(NS, state=None, before=None, limit=100)
        assert {job.job_id for job in found} == {"later", *(f"j{n}" for n in range(20))}
        await ledger.close()


async def test_work_that_another_was_in_the_way_of_is_done_again(ledger: SqlLedger) -> None:
    tries = []

    def work(connection: Connection) -> int:
        tries.append(1)
        if len(tries) < 3:
            connection.execute(
                text("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40P01'; END $$")
            )
        return len(tries)

    assert await ledger._db.write(work) == 3

    def never(connection: Connection) -> None:
        connection.execute(text("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$"))

    with pytest.raises(StoreUnavailableError, match="too busy"):
        await ledger._db.write(never)


async def test_many_at_once_under_one_key_are_one_job(ledger: SqlLedger) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(ledger.accept(new_job(f"j{n}", idempotency_key="k"), now=T0))
            for n in range(30)
        ]
    answers = [task.result() for task in asked]
    assert len({job.job_id for job, _ in answers}) == 1
    assert [duplicate for _, duplicate in answers].count(False) == 1


async def test_of_many_who_start_a_job_that_is_being_cancelled_at_most_one_does(
    ledger: SqlLedger,
) -> None:
    for round_ in range(10):
        job_id = f"j{round_}"
        await accepted(ledger, job_id)
        async with asyncio.TaskGroup() as group:
            starts = [
                group.create_task(started(ledger, job_id, f"{job_id}-a{n}")) for n in range(8)
            ]
            cancelling = group.create_task(ledger.request_cancel(NS, job_id, now=at(1)))
        won = [attempt for task in starts if (attempt := task.result()) is not None]
        state = cancelling.result().state
        assert (len(won), state) in {(0, JobState.CANCELLED), (1, JobState.CANCELLING)}
        numbers = [event.seq for event in await ledger.events(job_id, after=0)]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_commits_are_durable_whatever_the_server_is_set_to(
    postgres: Databases, url: str
) -> None:
    name = make_url(url).database
    postgres.server.sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    ledger = SqlLedger(PostgresDatabase(url))
    await ledger.open()
    try:
        show = text("SHOW synchronous_commit")
        assert await ledger._db.write(lambda db: db.execute(show).scalar_one()) == "on"
    finally:
        await ledger.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:s3cret@127.0.0.1:1/farm",
        "postgresql://someone:s3cret@/farm?host=/nowhere",
    ],
)
async def test_a_server_that_does_not_answer_is_an_unavailable_store_and_tells_no_password(
    url: str,
) -> None:
    with pytest.raises(StoreUnavailableError, match="can't be opened") as failed:
        await SqlLedger(PostgresDatabase(url)).open()
    assert "s3cret" not in str(failed.value.detail)


async def test_a_database_that_is_not_there_is_said(postgres: Databases) -> None:
    with pytest.raises(StoreUnavailableError, match="does not exist"):
        await SqlLedger(PostgresDatabase(postgres.server.url("nowhere"))).open()


def test_what_is_no_url_is_refused_without_being_repeated() -> None:
    with pytest.raises(InvalidInputError, match="postgresql://user:password@host") as refused:
        PostgresDatabase("s3cret and nothing")
    assert "s3cret" not in refused.value.detail
