"""What the `ArtifactStore` port promises."""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.core.model import Instant
from farm.errors import NotFoundError, TooLargeError
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.artifacts.bucket import BucketArtifacts, connect
from farm.stores.ports.artifacts import ArtifactStore
from tests.stores.bucket_server import Server

MB = 1024 * 1024
MAX_BYTES = 12 * MB


@pytest.fixture(params=["directory", "bucket"])
def artifacts_at(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], ArtifactStore]:
    """Make stores, each over what is at one place."""
    if request.param == "directory":
        return lambda place: DirectoryArtifacts(tmp_path / place, max_bytes=MAX_BYTES)
    server: Server = request.getfixturevalue("s3")
    url = server.new()
    return lambda place: BucketArtifacts(
        connect(f"{url}/{place}", answer_s=30, allow_http=True), max_bytes=MAX_BYTES, answer_s=30
    )


@pytest.fixture
def artifacts(artifacts_at: Callable[[str], ArtifactStore]) -> ArtifactStore:
    return artifacts_at("artifacts")


async def content(store: ArtifactStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in store.read(key)])


async def kept(store: ArtifactStore, *chunks: bytes, job_id: str = "j1") -> tuple[str, int, str]:
    async with store.create(job_id) as file:
        for chunk in chunks:
            await file.write(chunk)
        return await file.commit()


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        (b"",),
        (b"a", b"b"),
        (os.urandom(MB), b"x" * 300_000, b"tail"),
        (os.urandom(4 * MB), b"x" * MB, b"y" * (5 * MB)),
        (os.urandom(6 * MB), b"", os.urandom(6 * MB)),
    ],
    ids=["nothing", "empty", "small", "large", "whole parts", "parts"],
)
async def test_what_was_written_reads_back_with_its_size_and_hash(
    artifacts: ArtifactStore, chunks: tuple[bytes, ...]
) -> None:
    whole = b"".join(chunks)
    key, size, sha256 = await kept(artifacts, *chunks)
    assert (size, sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert await content(artifacts, key) == whole


async def test_files_are_apart_even_within_a_job(artifacts: ArtifactStore) -> None:
    one, two = await kept(artifacts, b"1"), await kept(artifacts, b"2")
    assert one[0] != two[0]
    assert (await content(artifacts, one[0]), await content(artifacts, two[0])) == (b"1", b"2")


async def test_more_than_the_limit_is_refused_and_the_limit_itself_is_not(
    artifacts: ArtifactStore,
) -> None:
    await kept(artifacts, bytes(MAX_BYTES - 1), b"x")
    async with artifacts.create("j1") as file:
        await file.write(bytes(MAX_BYTES))
        with pytest.raises(TooLargeError):
            await file.write(b"x")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "j1",
        "j1/x",
        "../secret",
        "j1/../../secret",
        "/etc/passwd",
        f"j1/{'0' * 32}",
        "j1/\0",
    ],
)
async def test_a_key_that_was_never_given_out_is_not_found(
    artifacts: ArtifactStore, key: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(NotFoundError):
        await content(artifacts, key)


async def test_many_are_written_at_once(artifacts: ArtifactStore) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(kept(artifacts, bytes([n]) * 300_000), name=f"write-{n}")
            for n in range(20)
        ]
    for n, task in enumerate(tasks):
        assert await content(artifacts, task.result()[0]) == bytes([n]) * 300_000


@pytest.mark.parametrize("size", [1, 6 * MB])
async def test_a_file_is_another_one_s_to_read_as_soon_as_it_is_committed(
    artifacts_at: Callable[[str], ArtifactStore], size: int
) -> None:
    key, _, _ = await kept(artifacts_at("here"), bytes(size))
    assert await content(artifacts_at("here"), key) == bytes(size)
    with pytest.raises(NotFoundError):
        await content(artifacts_at("there"), key)


async def test_a_store_is_told_from_others_by_its_number(
    artifacts_at: Callable[[str], ArtifactStore],
) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(artifacts_at("here").number(), name=f"number-{n}") for n in range(5)
        ]
    here = {task.result() for task in asked}
    assert here == {await artifacts_at("here").number()}
    assert await artifacts_at("there").number() not in here


async def test_a_jobs_files_go_and_those_of_others_stay(
    artifacts: ArtifactStore, tmp_path: Path
) -> None:
    keys = [(await kept(artifacts, b"abc", job_id=job))[0] for job in ("j1", "j1", "j2")]
    assert (await artifacts.size("j1"), await artifacts.size("j3")) == (6, 0)
    for _ in range(2):
        await artifacts.remove("j1")
        for key in keys[:2]:
            with pytest.raises(NotFoundError):
                await content(artifacts, key)
    assert await content(artifacts, keys[2]) == b"abc"
    assert await artifacts.size("j1") == 0
    assert not (tmp_path / "artifacts" / "j1").exists()
    key, _, _ = await kept(artifacts, b"again", job_id="j1")
    assert await content(artifacts, key) == b"again"


async def test_one_file_is_discarded_and_no_other_place_is_touched(
    artifacts: ArtifactStore, tmp_path: Path
) -> None:
    keys = [(await kept(artifacts, b"abc"))[0] for _ in range(2)]
    (tmp_path / "mine").write_text("mine")
    for key in (keys[0], keys[0], "../mine", "j1/../../mine"):
        await artifacts.discard(key)
    assert await artifacts.size("j1") == 3
    assert await content(artifacts, keys[1]) == b"abc"
    assert (tmp_path / "mine").exists()


async def test_files_that_are_old_go(artifacts: ArtifactStore) -> None:
    now = time.time()
    keys = [(await kept(artifacts, b"abc", job_id=job))[0] for job in ("j1", "j1", "j2")]
    assert await artifacts.remove_old("j1", before=Instant(now - 60)) == 0
    assert await artifacts.remove_old("j1", before=Instant(now + 60)) == 2
    assert await artifacts.remove_old("j1", before=Instant(now + 60)) == 0
    assert await artifacts.size("j1") == 0
    assert await content(artifacts, keys[2]) == b"abc"
