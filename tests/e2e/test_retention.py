"""Jobs of real coordinators that are run again, deleted, and kept for their time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from farm.sdk import FarmClient
from farm.sdk.errors import FarmApiError
from farm.stores.keyring import new_key
from tests.e2e.faults.house import House
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.puppet import Puppet
from tests.patience import PATIENCE_S
from tests.stores import redis_server
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]

KEEP = {"FARM_JOBS__KEEP_S": "8", "FARM_ARTIFACTS__FILES_KEEP_S": "2"}
A_JOB = job("a job", {"goto": "https://example.com/"})


@pytest.fixture
def shared(tmp_path: Path, postgres: Databases, redis_url: str) -> Iterator[dict[str, str]]:
    with redis_server.running(tmp_path) as redis:
        yield {
            "FARM_REDIS__URL": redis,
            "FARM_LEDGER__URL": postgres.new(),
            "FARM_ARTIFACTS__DIR": str(tmp_path / "files"),
            "FARM_IDENTITY_KEY": new_key(),
            **KEEP,
        }


@pytest.fixture
async def two(tmp_path: Path, shared: dict[str, str]) -> AsyncIterator[list[House]]:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(House(root=tmp_path / name, settings=shared))
    yield made
    for house in made:
        house.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[House]:
    house = House(root=tmp_path, settings=KEEP)
    yield house
    house.close()


async def is_gone(client: FarmClient, job_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while job_id in {job.id for job in (await client.jobs()).items}:
            await asyncio.sleep(0.05)
    with pytest.raises(FarmApiError, match="no job"):
        await client.job(job_id)


async def test_what_has_ended_goes_after_its_time_and_what_waits_stays(alone: House) -> None:
    await alone.serve()
    async with alone.client() as client:
        await client.put_file("a.txt", b"abc")
        waits = await submitted(client, A_JOB)
        ended = await submitted(client, A_JOB)
        await client.cancel(ended)
        await is_gone(client, ended)
        async with asyncio.timeout(PATIENCE_S):
            while list(alone.data_dir.joinpath("artifacts").glob("files-*/*")):
                await asyncio.sleep(0.05)
        assert (await client.job(waits)).state == "queued"


@pytest.mark.slow
async def test_a_job_that_was_stopped_runs_again_at_another_coordinator_and_goes_in_its_time(
    two: list[House],
) -> None:
    one, other = two
    await one.serve()
    await other.serve()
    a = Puppet("a", automatic=False)
    async with one.client() as first, other.client() as second:
        job_id = await submitted(first, A_JOB)
        await first.cancel(job_id)
        assert (await second.retry(job_id, by="anna")).state == "queued"
        async with a.at(one.url):
            await a.is_let_in()
            await a.is_running()
            await a.finish()
            done = await rested(second, job_id)
        assert (done.state, len(done.history)) == ("succeeded", 1)
        for client in (first, second):
            await is_gone(client, job_id)
