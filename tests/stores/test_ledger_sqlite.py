"""What only SQLite can get wrong: the file, the disk, the process that is killed."""

import asyncio
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from farm.core.job_states import JobState
from farm.errors import StoreUnavailableError
from farm.stores.ledger import SqliteDatabase, SqlLedger
from farm.stores.ledger.mounts import network_file_system
from tests.patience import PATIENCE_S
from tests.stores.ledger_rows import (
    NS,
    T0,
    TOKEN,
    accepted,
    finish,
    items,
    new_job,
    running,
    said,
    started,
)

_MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
40 22 0:35 / /mnt/shared\\040files rw shared:9 - nfs4 host:/export rw
41 40 8:2 / /mnt/shared\\040files/local rw - xfs /dev/sdb rw
42 22 0:36 / /mnt/twice rw - cifs //host/share rw
43 42 8:3 / /mnt/twice rw master:3 - ext4 /dev/sdc rw
"""


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    ledger = SqlLedger(SqliteDatabase(tmp_path / "farm.db"))
    await ledger.open()
    yield ledger
    await ledger.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/farm.db", None),
        ("/mnt/shared files/farm", "nfs4"),
        ("/mnt/shared files/local/farm", None),
        ("/mnt/shared filesystem", None),
        ("/mnt/twice/farm", None),
    ],
)
def test_a_network_file_system_is_known_by_the_innermost_mount(
    tmp_path: Path, path: str, kind: str | None
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(_MOUNTINFO)
    assert network_file_system(Path(path), mounts) == kind


def test_without_a_list_of_mounts_nothing_is_known(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, tmp_path / "nowhere") is None


async def test_a_network_file_system_is_refused_by_name(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 0:35 / {tmp_path} rw - nfs4 host:/export rw\n")
    ledger = SqlLedger(SqliteDatabase(tmp_path / "farm.db", mounts=mounts))
    with pytest.raises(StoreUnavailableError, match=r"network file system \(nfs4\)"):
        await ledger.open()
    assert not (tmp_path / "farm.db").exists()


async def test_only_the_owner_may_read_its_files(sqlite: SqlLedger, tmp_path: Path) -> None:
    await accepted(sqlite)
    files = [path for path in tmp_path.iterdir() if path.name.startswith("farm.db")]
    assert {path.name for path in files} == {"farm.db", "farm.db-wal", "farm.db-shm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


async def test_commits_are_durable_and_references_are_checked(sqlite: SqlLedger) -> None:
    db = sqlite._db

    def pragma(name: str) -> object:
        return lambda connection: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()

    for name, value in {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }.items():
        assert await db.write(pragma(name)) == value  # type: ignore[arg-type]  # any answer


async def test_readers_do_not_wait_for_a_writer(sqlite: SqlLedger, tmp_path: Path) -> None:
    await accepted(sqlite)
    with closing(sqlite3.connect(tmp_path / "farm.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(PATIENCE_S):
            assert (await sqlite.job(NS, "j1")).state is JobState.QUEUED


async def test_a_writer_waits_for_another_process_instead_of_failing(
    sqlite: SqlLedger, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "farm.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(accepted(sqlite), name="accept")
            assert await sqlite.counts()
            assert not writing.done()
            other.execute("COMMIT")
    assert (await sqlite.job(NS, "j1")).state is JobState.QUEUED


async def test_the_event_loop_goes_on_while_a_write_waits(
    sqlite: SqlLedger, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "farm.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(accepted(sqlite), name="accept")
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not writing.done()
            other.execute("ROLLBACK")


async def test_a_damaged_file_is_an_unavailable_store(tmp_path: Path) -> None:
    (tmp_path / "farm.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreUnavailableError, match="not a database") as failed:
        await SqlLedger(SqliteDatabase(tmp_path / "farm.db")).open()
    assert failed.value.__cause__ is not None


async def test_a_missing_directory_is_an_unavailable_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="No such file"):
        await SqlLedger(SqliteDatabase(tmp_path / "nowhere" / "farm.db")).open()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


async def test_a_file_that_can_grow_no_more_fails_whole_calls_and_the_ledger_recovers(
    sqlite: SqlLedger, tmp_path: Path
) -> None:
    await running(sqlite)
    with file_size_limit((tmp_path / "farm.db-wal").stat().st_size):
        with pytest.raises(StoreUnavailableError):
            await sqlite.record("a1", TOKEN, [said(1), items(2, 500)], now=T0)
        assert (await sqlite.attempt("a1")).last_seq == 0
    assert await sqlite.record("a1", TOKEN, [said(1), items(2, 500)], now=T0) == 2
    assert len([item async for item in sqlite.items("j1")]) == 500


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    point = tmp_path / "small"
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(point)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    yield point
    subprocess.run(["umount", str(point)], check=True)


async def test_a_full_disk_is_an_unavailable_store_that_recovers_and_loses_nothing_stored(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(256 * 1024))
    ledger = SqlLedger(SqliteDatabase(small_disk / "farm.db"))
    await ledger.open()
    await running(ledger)

    async def fill() -> None:
        for n in range(1, 1000):
            await ledger.record("a1", TOKEN, [items(n, 100)], now=T0)

    with pytest.raises(StoreUnavailableError, match="full"):
        await fill()
    stored = (await ledger.attempt("a1")).last_seq
    assert stored > 0
    assert len([item async for item in ledger.items("j1")]) == 100 * stored
    ballast.unlink()
    assert await ledger.record("a1", TOKEN, [items(stored + 1, 100)], now=T0) == stored + 1
    await ledger.close()


_WRITER = """
import asyncio, sys
from pathlib import Path
from farm.stores.ledger import SqliteDatabase, SqlLedger
from tests.stores.ledger_rows import T0, TOKEN, items, new_job, said, started

async def main():
    ledger = SqlLedger(SqliteDatabase(Path(sys.argv[1])))
    await ledger.open()
    n = 0
    while True:
        n += 1
        await ledger.accept(new_job(f"j{n}"), now=T0)
        print(f"j{n}", flush=True)
        await started(ledger, f"j{n}", f"a{n}")
        await ledger.record(f"a{n}", TOKEN, [said(1), items(2, 20)], now=T0)

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 7, 40])
async def test_after_kill_9_every_acknowledged_job_is_there_and_all_is_consistent(
    tmp_path: Path, acknowledged: int
) -> None:
    path = tmp_path / "farm.db"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(acknowledged)]
        writer.kill()
        told += writer.stdout.read().split()
    ledger = SqlLedger(SqliteDatabase(path))
    assert await ledger.open() == 2
    for job_id in told:
        job = await ledger.job(NS, job_id)
        events = await ledger.events(job_id, after=0)
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        assert len([item async for item in ledger.items(job_id)]) == job.item_count
        for attempt in await ledger.attempts(job_id):
            assert (attempt.last_seq, attempt.item_count) in ((0, 0), (2, 20))
    await ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_two_ledgers_over_one_file_share_one_truth(sqlite: SqlLedger, tmp_path: Path) -> None:
    other = SqlLedger(SqliteDatabase(tmp_path / "farm.db"))
    assert await other.open() == 2
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(
                ledger.accept(new_job(f"j{n}-{name}", idempotency_key=f"k{n}"), now=T0),
                name=f"accept-{name}-{n}",
            )
            for n in range(20)
            for name, ledger in (("one", sqlite), ("two", other))
        ]
    assert sum(not task.result()[1] for task in asked) == 20
    await started(sqlite, asked[0].result()[0].job_id)
    assert await other.finish(finish(), now=T0) is not None
    assert await sqlite.running_attempts() == []
    await other.close()
