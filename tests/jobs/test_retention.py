"""Jobs that are old go with their files, and nothing that is half done stays."""

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from farm.core.job_states import JobState
from farm.core.model import Instant, Namespace
from farm.errors import ArtifactStoreFullError, StoreUnavailableError
from farm.jobs.handed_in import HandedIn, folder_of
from farm.jobs.retention import Retention
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.ledger import SqliteDatabase, SqlLedger, SqlRetention
from tests.stores.ledger_rows import (
    NS,
    T0,
    TOKEN,
    TRACE,
    accepted,
    artifact,
    at,
    finish,
    running,
    started,
)
from tests.stores.test_artifact_directory import files
from tests.stores.test_artifacts import kept

KEEP_S, FILES_KEEP_S = 100.0, 50.0


class Failing(DirectoryArtifacts):
    """Can't remove the files of some jobs."""

    holds: frozenset[str] = frozenset()

    async def remove(self, job_id: str) -> None:
        if job_id in self.holds:
            raise StoreUnavailableError("the disk is read-only")
        await super().remove(job_id)


class House:
    """A ledger and files, and who deletes them."""

    def __init__(self, root: Path, ledger: SqlLedger) -> None:
        self.root = root
        self.ledger = ledger
        self.now = at(0)
        self.artifacts = Failing(root, max_bytes=1_000)
        self.store = SqlRetention(ledger.database)
        self.metrics = CollectorRegistry()

    def retention(
        self, *, keep_s: float | None = KEEP_S, recordings_keep_s: float | None = None
    ) -> Retention:
        self.metrics = CollectorRegistry()
        return Retention(
            self.store,
            self.artifacts,
            self.handed_in(),
            self.namespaces,
            lambda: self.now,
            keep_s=keep_s,
            recordings_keep_s=recordings_keep_s,
            metrics=self.metrics,
        )

    def handed_in(self, *, keep_s: float | None = FILES_KEEP_S) -> HandedIn:
        return HandedIn(self.artifacts, lambda: self.now, max_bytes=10, keep_s=keep_s)

    async def namespaces(self) -> Sequence[Namespace]:
        return [NS]

    async def ended(self, n: int, *, after: float = 0) -> None:
        await running(self.ledger, f"j{n}", f"a{n}")
        key, _, _ = await kept(self.artifacts, b"abc", job_id=f"j{n}")
        assert key
        await self.ledger.add_artifact(artifact(job_id=f"j{n}", attempt_id=f"a{n}"), TOKEN)
        await self.ledger.finish(finish(JobState.SUCCEEDED, f"a{n}"), now=at(after))

    async def jobs(self) -> list[str]:
        found = await self.ledger.jobs(NS, state=None, before=None, limit=1_000)
        return sorted(job.job_id for job in found)

    def folders(self) -> list[str]:
        return sorted({path.parent.name for path in files(self.root)})


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    ledger = SqlLedger(SqliteDatabase(tmp_path / "farm.db"))
    await ledger.open()
    yield House(tmp_path / "artifacts", ledger)
    await ledger.close()


async def test_what_ended_long_enough_ago_goes_with_its_files_and_the_rest_stays(
    house: House,
) -> None:
    for n, after in enumerate((0, 50, 60)):
        await house.ended(n, after=after)
    retention = house.retention()
    house.now = at(KEEP_S + 50)
    await retention.sweep()
    assert await house.jobs() == house.folders() == ["j2"]
    assert await house.store.discarded(limit=9) == []
    assert house.metrics.get_sample_value("farm_jobs_deleted_total", {"why": "old"}) == 2


async def test_by_default_nothing_is_deleted(house: House) -> None:
    await house.ended(1)
    house.now = at(10**9)
    await house.retention(keep_s=None).sweep()
    assert await house.jobs() == house.folders() == ["j1"]


async def test_a_recording_goes_in_its_own_time_and_its_file_with_it(house: House) -> None:
    await accepted(house.ledger, "j1")
    await started(house.ledger, "j1", "a1", recordings=(TRACE,))
    keys = []
    for kind in ("trace", None):
        key, _, _ = await kept(house.artifacts, b"abc", job_id="j1")
        file = replace(artifact(), key=key, recording=kind, created_at=at(0))
        assert await house.ledger.add_artifact(file, TOKEN) is not None
        keys.append(key)
    await house.ledger.finish(finish(JobState.SUCCEEDED, "a1"), now=at(1))
    house.now = at(KEEP_S - 1)
    await house.retention(recordings_keep_s=KEEP_S - 1).sweep()
    assert [f"j1/{path.name}" for path in files(house.root)] == keys[1:]
    assert await house.jobs() == ["j1"]


async def test_more_than_a_batch_goes_in_one_sweep(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.jobs.retention._BATCH", 2)
    for n in range(5):
        await house.ended(n)
    house.now = at(KEEP_S)
    await house.retention().sweep()
    assert await house.jobs() == house.folders() == []


async def test_files_that_a_crash_has_left_are_removed_by_the_next_life(house: House) -> None:
    await house.ended(1)
    await house.ended(2)
    await house.store.delete(NS, "j1")  # and there it ends
    assert house.folders() == ["j1", "j2"]
    await house.retention(keep_s=None).sweep()
    assert house.folders() == ["j2"]
    assert await house.store.discarded(limit=9) == []


async def test_files_that_can_not_be_removed_keep_nothing_else_and_are_tried_again(
    house: House,
) -> None:
    for n in range(3):
        await house.ended(n)
    house.artifacts.holds = frozenset({"j1"})
    house.now = at(KEEP_S)
    retention = house.retention()
    await retention.sweep()
    assert await house.jobs() == []
    assert house.folders() == ["j1"]
    assert await house.store.discarded(limit=9) == ["j1"]
    house.artifacts.holds = frozenset()
    await retention.sweep()
    assert house.folders() == []


async def test_a_job_is_deleted_at_once_where_somebody_wants_it(house: House) -> None:
    await house.ended(1)
    await house.ended(2)
    await house.retention(keep_s=None).delete(NS, "j1", by="anna")
    assert await house.jobs() == house.folders() == ["j2"]
    assert house.metrics.get_sample_value("farm_jobs_deleted_total", {"why": "asked"}) == 1


async def test_what_was_handed_in_is_kept_for_its_time(house: House) -> None:
    old, _, _ = await kept(house.artifacts, b"old", job_id=folder_of(NS))
    new, _, _ = await kept(house.artifacts, b"new", job_id=folder_of(NS))
    for key, made_at in ((old, T0), (new, at(1))):
        os.utime(house.root / key, (made_at, made_at))
    house.now = Instant(at(FILES_KEEP_S) + 0.5)
    await house.retention(keep_s=None).sweep()
    assert [f"{path.parent.name}/{path.name}" for path in files(house.root)] == [new]
    house.now = at(10**9)
    await house.handed_in(keep_s=None).sweep(house.namespaces)
    assert len(files(house.root)) == 1


async def test_what_may_be_handed_in_has_a_bound_for_each_namespace(house: House) -> None:
    handed_in = house.handed_in()
    await kept(house.artifacts, b"12345678", job_id=folder_of(NS))
    await handed_in.require_room(NS, 2)
    with pytest.raises(ArtifactStoreFullError, match="8 of 10 bytes"):
        await handed_in.require_room(NS, 3)
    await handed_in.require_room(Namespace("other"), 10)
