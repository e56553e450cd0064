"""The short form of the storm, of seeds that never change: `make storm` runs the long one."""

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.faults.house import Processes, living
from tests.e2e.processes import ROOT, ended, process
from tests.e2e.storm.schedule import Blow
from tests.e2e.storm.storm import Storm
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]


@pytest.mark.slow
async def test_whatever_is_killed_stopped_or_cut_off_nothing_is_lost_and_nothing_done_twice(
    tmp_path: Path,
) -> None:
    storm = await weathered(tmp_path, seed=2, jobs=40, every=3)
    assert blows(storm) == {"sim": _ALL, "coordinator": _ALL}


@pytest.mark.slow
async def test_coordinators_that_share_everything_lose_nothing_either_nor_what_they_share(
    tmp_path: Path, redis_url: str, postgres: Databases
) -> None:
    storm = await weathered(tmp_path, seed=1, coordinators=3, jobs=60, every=2)
    assert blows(storm) == {
        "sim": _ALL,
        "coordinator": _ALL,
        "redis": _ALL,
        "postgres": _ALL,
        "network": {Blow.CUT, Blow.STALL, Blow.LOSE},
    }


@pytest.mark.slow
async def test_a_storm_that_is_told_to_end_ends_all_that_it_has_started(
    tmp_path: Path, redis_url: str, postgres: Databases
) -> None:
    command = ("tests.e2e.storm", "--coordinators", "2", "--every", "1", "--seed", "1")
    async with process(*command, cwd=ROOT, env={"TMPDIR": str(tmp_path)}) as storm:
        assert storm.stdout is not None
        while b"network" not in await storm.stdout.readline():
            pass
        there = started_by(tmp_path)
        assert len({one.name() for one in there}) > 2  # PostgreSQL and Redis are among them
        for _ in range(2):
            storm.terminate()
        code, said, _ = await ended(storm, 30)
        assert (code, "with all that it had started" in said) == (1, True)
        assert living(there | started_by(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def started_by(folder: Path) -> Processes:
    """What has the folder of a storm for its own."""
    found = set()
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if one.environ().get("TMPDIR", "").startswith(str(folder)):
                found |= {one, *one.children(recursive=True)}
    return found


_ALL = {Blow.KILL, Blow.PAUSE, Blow.CUT, Blow.STALL, Blow.LOSE}
"""But that packets vanish, which not every machine allows."""


def blows(storm: Storm) -> dict[str, set[Blow]]:
    """What each kind was struck by."""
    found: dict[str, set[Blow]] = {}
    for kind, blow in storm.struck:
        found.setdefault(kind, set()).update({blow} - {Blow.VANISH})
    return found


async def weathered(
    root: Path, *, seed: int, jobs: int, every: float, coordinators: int = 1
) -> Storm:
    """One in which everybody is struck by everything."""
    said: list[str] = []
    storm = Storm(
        seed=seed,
        coordinators=coordinators,
        jobs=jobs,
        every=every,
        pause_s=0.15,
        longest_s=3.5,
        say=said.append,
    )
    await storm.run(root)
    assert storm.flaws == [], "\n".join([*said, *storm.flaws])
    assert storm.ends["succeeded"] > jobs / 2, storm.ends
    return storm
