"""What comes in and goes out: files too large, disks too full, streams cut off, wrong tokens."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from farm.protocol.failures import Reason
from farm.sdk import FarmApiError, FarmClient
from farm.sdk.streams import Sent, server_sent
from tests.e2e.faults.conftest import MAX_ARTIFACT_BYTES, Tough
from tests.e2e.faults.house import AGENT_TOKEN, House
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import (
    happened,
    job,
    notices,
    once,
    ran,
    rested,
    submitted,
    works,
)
from tests.e2e.processes import eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]


async def test_a_huge_artifact_is_refused_by_name_and_not_tried_again(
    client: FarmClient, place: Place
) -> None:
    big = f"{place.url}/big?bytes={2 * MAX_ARTIFACT_BYTES}"
    done = await ran(client, job("large", {"goto": big}, {"html": "page.html"}))
    assert done.state == "failed"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.ARTIFACT_TOO_LARGE, 1)
    assert len(done.history) == 1
    # The picture of the failure fits, its markup does not.
    assert [file.name for file in await client.artifacts(done.id)] == ["failure-1.png"]
    assert "capture_failed" in await notices(client, done.id)
    await works(client, place.url)


async def full(house: House, place: Place) -> None:
    """Nothing can be kept here, and nothing else is wrong."""
    async with house.client() as client:
        big = f"{place.url}/big?bytes=3000000"
        done = await ran(client, once("keeps", {"goto": big}, {"html": "page.html"}))
        assert done.state == "failed"
        assert done.failure is not None
        assert done.failure.reason == Reason.ARTIFACT_STORE_FULL, done.failure
        assert done.failure.step_index == 1
        assert "page.html" not in {file.name for file in await client.artifacts(done.id)}
        await works(client, place.url)


async def test_below_the_least_free_space_nothing_is_kept_and_the_farm_goes_on(
    house: House, place: Place
) -> None:
    house.settings = {"FARM_ARTIFACTS__MIN_FREE_BYTES": str(1 << 60)}
    await house.up("--allow", "127.0.0.1")
    await full(house, place)


@pytest.fixture
def tiny_disk(house: House) -> Iterator[Path]:
    """A file system of one megabyte where artifacts go."""
    disk = house.data_dir / "artifacts"
    disk.mkdir(parents=True)
    yield from _mounted(disk, "size=1m")


def _mounted(disk: Path, options: str) -> Iterator[Path]:
    """Mount a disk of its own there; needs root, and the right to mount."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mounting = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_a_disk_that_is_full_fails_the_attempt_and_leaves_nothing_half_written(
    house: House, place: Place, tiny_disk: Path
) -> None:
    house.settings = {"FARM_ARTIFACTS__MIN_FREE_BYTES": "0"}
    await house.up("--allow", "127.0.0.1")
    await full(house, place)
    assert list((tiny_disk / ".incoming").iterdir()) == []


@pytest.fixture
def small_temporary(house: House) -> Iterator[Path]:
    """A file system of a hundred megabytes where agents keep their files."""
    house.temporary.mkdir(parents=True)
    yield from _mounted(house.temporary, "size=100m")


async def test_an_agent_without_room_on_its_disk_takes_nothing_until_it_has_again(
    house: House, place: Place, small_temporary: Path
) -> None:
    house.settings = {"AGENT_MIN_FREE_BYTES": "40000000"}
    await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        await works(client, place.url)
        filler = small_temporary / "filler"
        filler.write_bytes(b"x" * 65_000_000)
        async with asyncio.timeout(PATIENCE_S):
            while not (agent := (await client.agents())[0]).draining:
                await asyncio.sleep(0.05)
        assert agent.draining_because == "low_disk"
        job_id = await submitted(client, once("waits", {"goto": f"{place.url}/"}))
        async with asyncio.timeout(PATIENCE_S):
            while (waiting := (await client.job(job_id)).waiting) is None:
                await asyncio.sleep(0.05)
        assert "draining" in str(waiting)
        assert "low_disk" in house.log.read_text()
        filler.unlink()
        assert (await rested(client, job_id, 20)).state == "succeeded"


@contextlib.asynccontextmanager
async def stream(tough: Tough, job_id: str, after: int) -> AsyncIterator[AsyncIterator[Sent]]:
    """A job's history over a connection of its own, which breaks at the end of the block."""
    headers = {"Authorization": f"Bearer {tough.house.admin_token}", "Last-Event-ID": str(after)}
    url = f"{tough.house.url}/v1/jobs/{job_id}/events"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        assert answer.status == 200
        yield server_sent(aiter(answer.content.iter_any()))


async def numbers(events: AsyncIterator[Sent], until: str) -> list[int]:
    """Read up to the first event of a kind; return the numbers read."""
    read: list[int] = []
    async with asyncio.timeout(60):
        async for event in events:
            if event.event == until == "end":
                return read
            read.append(int(event.id or 0))
            if event.event == until:
                return read
    raise AssertionError(f"the stream ended before {until}")


async def test_a_watcher_that_was_cut_off_goes_on_where_it_was(
    tough: Tough, client: FarmClient, place: Place
) -> None:
    place.hold("/held/page")
    steps = [{"goto": f"{place.url}/held/page"}, *({"goto": f"{place.url}/"},) * 10]
    job_id = await submitted(client, job("watched", *steps))
    async with stream(tough, job_id, 0) as events:
        first = await numbers(events, "step_started")
    place.let_go("/held/page")
    async with stream(tough, job_id, first[-1]) as events:
        second = await numbers(events, "step_ended")
    async with stream(tough, job_id, second[-1]) as events:
        third = await numbers(events, "end")
    every = [event.seq async for event in client.events(job_id)]
    assert first + second + third == every == list(range(1, len(every) + 1))
    assert (await rested(client, job_id)).state == "succeeded"


@pytest.mark.parametrize("token", [None, "", "wrong", "tf_wrong"])
async def test_without_a_token_or_with_a_wrong_one_nothing_is_told(
    tough: Tough, token: str | None
) -> None:
    async with FarmClient(tough.house.url, token) as stranger:
        for call in (stranger.jobs, stranger.agents, stranger.windows):
            with pytest.raises(FarmApiError) as refused:
                await call()
            assert refused.value.status == 401


async def test_an_agents_token_opens_nothing_but_its_own_door(tough: Tough) -> None:
    async with FarmClient(tough.house.url, AGENT_TOKEN) as agent:
        for call in (agent.jobs, agent.agents, agent.windows):
            with pytest.raises(FarmApiError) as refused:
                await call()
            assert refused.value.status == 403


@pytest.mark.parametrize(
    ("env", "code"),
    [({}, 2), ({"AGENT_TOKEN": ""}, 2), ({"AGENT_TOKEN": "wrong"}, 1)],
    ids=["none", "empty", "wrong"],
)
async def test_an_agent_without_the_right_token_ends_and_says_so(
    tough: Tough, house: House, client: FarmClient, env: dict[str, str], code: int
) -> None:
    told = {"FARM_URL": tough.house.url, "AGENT_CLIENT_ID": "stranger", **env}
    stranger = house.start("agent.cli", "run", env=told, farm=False)
    await eventually(lambda: stranger.poll() is not None, 30)
    assert stranger.returncode == code, house.said()
    assert "token" in house.said().lower()
    assert house.chromium() == set()
    assert "stranger" not in {agent.client_id for agent in await client.agents()}


async def test_an_admins_token_lets_no_agent_in(tough: Tough, house: House) -> None:
    told = {"FARM_URL": tough.house.url, "AGENT_CLIENT_ID": "stranger"}
    token = {"AGENT_TOKEN": tough.house.admin_token}
    stranger = house.start("agent.cli", "run", env={**told, **token}, farm=False)
    await eventually(lambda: stranger.poll() is not None, 30)
    assert stranger.returncode == 1, house.said()


async def test_a_cancelled_job_gives_its_slot_back(client: FarmClient, place: Place) -> None:
    place.hold("/held/page")
    job_id = await submitted(client, job("held", {"goto": f"{place.url}/held/page"}))
    await place.asked("GET /held/page")
    await client.cancel(job_id)
    await happened(client, job_id, "attempt_ended", 10)
    assert (await rested(client, job_id)).state == "cancelled"
    await place.left("/held/page")
    await works(client, place.url)
