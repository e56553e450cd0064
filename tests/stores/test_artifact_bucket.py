"""What only a bucket of artifacts can get wrong."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from farm.errors import StoreUnavailableError, TooLargeError
from farm.stores.artifacts.bucket import BucketArtifacts, BucketFile, connect
from tests.patience import PATIENCE_S
from tests.stores import bucket_server
from tests.stores.bucket_server import Server
from tests.stores.test_artifacts import MAX_BYTES, MB, content, kept

ANSWER_S = 0.5


def over(url: str, *, answer_s: float = 30.0, max_bytes: int = MAX_BYTES) -> BucketArtifacts:
    bucket = connect(url, answer_s=answer_s, allow_http=True)
    return BucketArtifacts(bucket, max_bytes=max_bytes, answer_s=answer_s)


@pytest.fixture
def url(s3: Server) -> str:
    return s3.new()


@pytest.fixture
def nothing_left(s3: Server, url: str) -> Iterator[None]:
    """In the end neither objects nor parts are there."""
    yield
    assert (s3.keys(url), s3.uploads(url)) == ([], 0)


async def much(file: BucketFile) -> None:
    for _ in range(30):
        await file.write(bytes(MB))


async def all_of(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@asynccontextmanager
async def parts_sent(store: BucketArtifacts) -> AsyncIterator[BucketFile]:
    async with store.create("j1") as file:
        for _ in range(11):
            await file.write(bytes(MB))
        yield file


async def test_what_is_left_without_commit_is_removed(
    s3: Server, url: str, nothing_left: None
) -> None:
    async with parts_sent(over(url)):
        assert (s3.keys(url), s3.uploads(url)) == ([], 1)


async def test_what_fails_is_removed(url: str, nothing_left: None) -> None:
    with pytest.raises(TooLargeError):
        await kept(over(url), bytes(6 * MB), bytes(MAX_BYTES))
    with pytest.raises(ZeroDivisionError):
        async with parts_sent(over(url)):
            raise ZeroDivisionError


@pytest.mark.parametrize("size", [1, 5 * MB, MAX_BYTES], ids=["whole", "a part", "parts"])
@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_a_task_cancelled_while_it_writes_or_commits_leaves_nothing(
    url: str, nothing_left: None, size: int, turns: int
) -> None:
    writing = asyncio.Event()

    async def write(commit: bool) -> None:
        async with over(url).create("j1") as file:
            if not commit:
                writing.set()
            await file.write(bytes(size))
            writing.set()
            if commit:
                await file.commit()
            await asyncio.Event().wait()

    for commit in (False, True):
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(write(commit), name="writer")
            await writing.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            writer.cancel()
        writing.clear()


@pytest.mark.parametrize(
    "job_id", ["../up", "a/b", "/abs", ".", "..", "", ".ledger", "ü", "%2e%2e%2fup", "x" * 300]
)
async def test_no_job_id_leads_out_of_the_prefix(s3: Server, url: str, job_id: str) -> None:
    key, _, _ = await kept(over(url), b"x", job_id=job_id)
    assert s3.keys(url) == [f"some/where/{key}"]
    assert key.count("/") == 1
    assert await content(over(url), key) == b"x"


async def test_of_what_a_killed_process_was_writing_nothing_is_to_be_seen(
    s3: Server, url: str
) -> None:
    script = (
        "import asyncio, sys\n"
        "from tests.stores.test_artifact_bucket import over, parts_sent\n"
        "async def main():\n"
        "    async with parts_sent(over(sys.argv[1])):\n"
        "        print('written', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = writer.stdout.readline()
        writer.kill()
    assert told == b"written\n"
    assert (s3.keys(url), s3.uploads(url)) == ([], 1)
    key, _, _ = await kept(over(url), b"x")
    assert s3.keys(url) == [f"some/where/{key}"]


async def test_no_file_is_in_memory_as_a_whole(url: str) -> None:
    script = (
        "import asyncio, os, re, sys\n"
        "from pathlib import Path\n"
        "from tests.stores.test_artifact_bucket import over\n"
        "def peak():\n"
        "    status = Path('/proc/self/status').read_text()\n"
        "    return int(re.search('VmHWM:\\\\s+(\\\\d+)', status)[1]) // 1024\n"
        "async def main():\n"
        "    store = over(sys.argv[1], max_bytes=10**9)\n"
        "    await store.check()\n"
        "    before = peak()\n"
        "    async with store.create('j1') as file:\n"
        "        for _ in range(1000): await file.write(bytes(65536))\n"
        "        key, size, _ = await file.commit()\n"
        "    async for chunk in store.read(key): size -= len(chunk)\n"
        "    print(size, peak() - before, flush=True)\n"
        # The client's threads do not take it well that the interpreter ends at once after them.
        "    os._exit(0)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, check=True
    )
    unread, grown_mb = done.stdout.split()
    assert int(unread) == 0
    print(grown_mb)
    assert int(grown_mb) < 50


async def test_of_a_job_with_very_many_files_none_is_left(s3: Server, url: str) -> None:
    store = over(url)
    async with asyncio.TaskGroup() as group:
        for n in range(1_010):
            group.create_task(kept(store, b"ab", job_id=f"j{n // 1_005}"), name=f"write-{n}")
    assert await store.size("j0") == 2_010
    await store.remove("j0")
    assert (await store.size("j0"), len(s3.keys(url))) == (0, 5)


class TestAway:
    """The store stops, or goes away, in the middle."""

    @pytest.fixture
    def server(self, s3: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
        with bucket_server.running() as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            yield server

    @pytest.fixture(params=["stopped", "killed"])
    def away(self, request: pytest.FixtureRequest, server: Server) -> Callable[[], None]:
        return server.stop if request.param == "stopped" else server.process.kill

    async def test_whatever_is_asked_it_is_said_to_be_away(
        self, server: Server, away: Callable[[], None]
    ) -> None:
        url = server.new()
        store = over(url, answer_s=ANSWER_S, max_bytes=10**9)
        key, _, _ = await kept(store, b"x")
        async with asyncio.timeout(PATIENCE_S):
            async with store.create("j1") as small, parts_sent(store) as large:
                away()
                with pytest.raises(StoreUnavailableError, match="the bucket"):
                    await small.commit()
                with pytest.raises(StoreUnavailableError, match="the bucket"):
                    await much(large)
            with pytest.raises(StoreUnavailableError, match="the bucket"):
                await content(store, key)
            with pytest.raises(StoreUnavailableError, match="the bucket"):
                await store.check()
            with pytest.raises(StoreUnavailableError, match="the bucket"):
                await store.number()

    async def test_one_that_stops_while_it_is_read_is_said_to_be_away(
        self, server: Server, away: Callable[[], None]
    ) -> None:
        url = server.new()
        key, _, _ = await kept(over(url, max_bytes=10**9), *[bytes(MB)] * 32)
        chunks = over(url, answer_s=ANSWER_S).read(key)
        assert await anext(chunks)
        away()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StoreUnavailableError, match="the bucket"):
                await all_of(chunks)

    async def test_it_is_used_again_when_it_is_back(self, server: Server) -> None:
        store = over(server.new(), answer_s=ANSWER_S)
        server.stop()
        with pytest.raises(StoreUnavailableError):
            await kept(store, b"x")
        server.go_on()
        key, _, _ = await kept(store, b"y")
        assert await content(store, key) == b"y"
