"""`farm serve` several times over one bucket: what one has taken any other gives."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from agent.link import HttpUploads
from farm.sdk import FarmClient
from farm.sdk.errors import FarmUnreachableError
from tests.e2e.faults.house import AGENT_TOKEN, House
from tests.e2e.faults.watching import rested, submitted
from tests.e2e.fleet import Fleet, fleet_of, sharing_all
from tests.e2e.processes import eventually
from tests.e2e.puppet import Puppet, attempt_of, token_of
from tests.e2e.test_shared_ledger import a_job
from tests.stores import redis_server
from tests.stores.bucket_server import Server
from tests.stores.conftest import Databases, postgres, s3_server

__all__ = ["postgres", "s3_server"]

LARGE = bytes(range(256)) * 28_000


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, postgres: Databases, s3_server: Server
) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    bucket = {"FARM_ARTIFACTS__URL": s3_server.new(), "FARM_ARTIFACTS__ALLOW_HTTP": "1"}
    with redis_server.running(folder) as redis:
        shared = sharing_all(redis, postgres.new())
        yield from fleet_of(folder, {**shared, **s3_server.environment, **bucket}, ("one", "two"))


@pytest.fixture
async def fleet(running: Fleet) -> Fleet:
    """All of them are there, whatever the test before has done."""
    await running.whole()
    return running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """What an agent asks with."""
    headers = {"Authorization": f"Bearer {AGENT_TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield session


async def parts(sent: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """Yield a large file, and end only when that is said."""
    yield LARGE
    if sent is not None:
        await sent.wait()


async def whole(client: FarmClient, job_id: str, name: str) -> bytes:
    return b"".join([chunk async for chunk in client.artifact(job_id, name)])


async def test_what_one_has_taken_another_gives_and_one_that_is_killed_leaves_nothing_half_done(
    fleet: Fleet,
    s3_server: Server,
    http: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    one, two = fleet.houses
    bucket = one.settings["FARM_ARTIFACTS__URL"]
    agent = Puppet("a", automatic=False)
    async with agent.at(two.url), one.client() as first, two.client() as second:
        await agent.is_let_in()
        job_id = await submitted(second, a_job("with files"))
        await agent.is_running()
        (run,) = agent.runs.values()
        of = attempt_of(run), token_of(run)
        through_one = HttpUploads(http, lambda: one.url)
        (tmp_path / "large").write_bytes(LARGE)
        for name, content in (("large", tmp_path / "large"), ("small", b"abc")):
            kept = await through_one.upload(*of, name, content, "application/octet-stream")
            assert kept == name
        stored = await second.put_file("in", parts())
        got = await through_one.fetch(*of, stored.reference, tmp_path / "got", len(LARGE))
        assert got.read_bytes() == LARGE

        taken, sent = sorted(s3_server.keys(bucket)), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(broken_off(first, parts(sent)), name="sending")
            await eventually(lambda: s3_server.uploads(bucket) == 1, 20)
            fleet.kill(0)
            sent.set()
            await sending
        assert sorted(s3_server.keys(bucket)) == taken

        for name, content in (("large", LARGE), ("small", b"abc")):
            assert await whole(second, job_id, name) == content
        await agent.finish()
        assert (await rested(second, job_id)).state == "succeeded"
    assert not (one.data_dir / "artifacts").exists()


async def broken_off(client: FarmClient, content: AsyncIterator[bytes]) -> None:
    with pytest.raises(FarmUnreachableError):
        await client.put_file("broken off", content)


async def test_another_bucket_is_refused_at_the_start(fleet: Fleet, tmp_path: Path) -> None:
    settings = fleet.houses[0].settings
    more = {"FARM_ARTIFACTS__URL": f"{settings['FARM_ARTIFACTS__URL']}/else"}
    other = House(root=tmp_path, settings={**settings, **more})
    try:
        with pytest.raises(AssertionError, match="FARM_ARTIFACTS__URL to what all share"):
            await other.serve()
    finally:
        other.close()
