"""What the `ArtifactStore` port promises, and what only a directory can get wrong."""

import asyncio
import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.core.model import Instant
from farm.errors import (
    ArtifactStoreFullError,
    NotFoundError,
    StoreUnavailableError,
    TooLargeError,
)
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.ports.artifacts import ArtifactStore

MB = 1024 * 1024


@pytest.fixture(params=["directory"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    assert request.param == "directory"
    return DirectoryArtifacts(tmp_path / "artifacts", max_bytes=2 * MB)


async def content(store: ArtifactStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in store.read(key)])


async def kept(store: ArtifactStore, *chunks: bytes, job_id: str = "j1") -> tuple[str, int, str]:
    async with store.create(job_id) as file:
        for chunk in chunks:
            await file.write(chunk)
        return await file.commit()


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


class TestRemoving:
    async def test_a_jobs_files_go_and_those_of_others_stay(
        self, artifacts: ArtifactStore, tmp_path: Path
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
        self, artifacts: ArtifactStore, tmp_path: Path
    ) -> None:
        keys = [(await kept(artifacts, b"abc"))[0] for _ in range(2)]
        (tmp_path / "mine").write_text("mine")
        for key in (keys[0], keys[0], "../mine", "j1/../../mine"):
            await artifacts.discard(key)
        assert await artifacts.size("j1") == 3
        assert await content(artifacts, keys[1]) == b"abc"
        assert (tmp_path / "mine").exists()

    async def test_files_that_are_old_go(self, artifacts: ArtifactStore, tmp_path: Path) -> None:
        keys = [(await kept(artifacts, b"abc"))[0] for _ in range(3)]
        for seconds, key in enumerate(keys):
            os.utime(tmp_path / "artifacts" / key, (seconds, seconds))
        assert await artifacts.remove_old("j1", before=Instant(2.0)) == 2
        assert await artifacts.remove_old("j1", before=Instant(2.0)) == 0
        assert await artifacts.remove_old("j2", before=Instant(2.0)) == 0
        assert await content(artifacts, keys[2]) == b"abc"

    async def test_what_can_not_be_removed_is_said(
        self, artifacts: ArtifactStore, tmp_path: Path
    ) -> None:
        await kept(artifacts, b"abc")
        (tmp_path / "artifacts" / "j1" / "a-folder").mkdir()
        with pytest.raises(StoreUnavailableError):
            await artifacts.remove("j1")


class TestPort:
    @pytest.mark.parametrize(
        "chunks",
        [(), (b"",), (b"a", b"b"), (os.urandom(MB), b"x" * 300_000, b"tail")],
        ids=["nothing", "empty", "small", "large"],
    )
    async def test_what_was_written_reads_back_with_its_size_and_hash(
        self, artifacts: ArtifactStore, chunks: tuple[bytes, ...]
    ) -> None:
        whole = b"".join(chunks)
        key, size, sha256 = await kept(artifacts, *chunks)
        assert (size, sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
        assert await content(artifacts, key) == whole

    async def test_files_are_apart_even_within_a_job(self, artifacts: ArtifactStore) -> None:
        one, two = await kept(artifacts, b"1"), await kept(artifacts, b"2")
        assert one[0] != two[0]
        assert (await content(artifacts, one[0]), await content(artifacts, two[0])) == (b"1", b"2")

    async def test_more_than_the_limit_is_refused_and_the_limit_itself_is_not(
        self, artifacts: ArtifactStore
    ) -> None:
        await kept(artifacts, bytes(MB), bytes(MB))
        async with artifacts.create("j1") as file:
            await file.write(bytes(2 * MB))
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
        self, artifacts: ArtifactStore, key: str, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("secret")
        with pytest.raises(NotFoundError):
            await content(artifacts, key)

    async def test_many_are_written_at_once(self, artifacts: ArtifactStore) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(kept(artifacts, bytes([n]) * 300_000), name=f"write-{n}")
                for n in range(20)
            ]
        for n, task in enumerate(tasks):
            assert await content(artifacts, task.result()[0]) == bytes([n]) * 300_000


class TestDirectory:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "artifacts"

    @pytest.fixture
    def store(self, root: Path) -> DirectoryArtifacts:
        return DirectoryArtifacts(root, max_bytes=2 * MB)

    async def test_what_is_left_without_commit_is_removed(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        async with store.create("j1") as file:
            await file.write(bytes(MB))
            assert len(files(root)) == 1
        assert files(root) == []

    async def test_what_fails_is_removed(self, store: DirectoryArtifacts, root: Path) -> None:
        with pytest.raises(TooLargeError):
            await kept(store, bytes(MB), bytes(2 * MB))
        assert files(root) == []

    async def test_a_file_is_not_to_be_seen_before_commit(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        async with store.create("j1") as file:
            await file.write(bytes(MB))
            assert not (root / "j1").exists()
            key, _, _ = await file.commit()
            assert files(root) == [root / key]

    async def test_a_task_cancelled_while_it_writes_leaves_no_file_and_no_descriptor(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        begun = asyncio.Event()

        async def write_for_ever() -> None:
            async with store.create("j1") as file:
                while True:
                    begun.set()
                    await file.write(b"")
                    await asyncio.sleep(0)

        open_before = len(os.listdir("/proc/self/fd"))
        async with asyncio.TaskGroup() as group:
            writers = [group.create_task(write_for_ever(), name=f"w{n}") for n in range(30)]
            await begun.wait()
            for writer in writers:
                writer.cancel()
        assert files(root) == []
        assert len(os.listdir("/proc/self/fd")) == open_before

    async def test_a_task_cancelled_while_it_commits_leaves_no_file(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        committing = asyncio.Event()

        async def write() -> None:
            async with store.create("j1") as file:
                await file.write(bytes(200_000))
                committing.set()
                await file.commit()

        async with asyncio.TaskGroup() as group:
            writer = group.create_task(write(), name="writer")
            await committing.wait()
            writer.cancel()
        assert files(root) == []

    @pytest.mark.parametrize(
        "job_id", ["../up", "a/b", "/abs", ".", "..", "", ".incoming", "ü", "x" * 300]
    )
    async def test_no_job_id_leads_out_of_the_directory(
        self, store: DirectoryArtifacts, root: Path, job_id: str
    ) -> None:
        key, _, _ = await kept(store, b"x", job_id=job_id)
        assert (root / key).resolve().parent.parent == root.resolve()
        assert await content(store, key) == b"x"
        assert not list((root / ".incoming").iterdir())

    async def test_a_link_in_the_place_of_a_file_is_not_followed(
        self, store: DirectoryArtifacts, root: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("secret")
        key, _, _ = await kept(store, b"x")
        (root / key).unlink()
        (root / key).symlink_to(tmp_path / "secret")
        with pytest.raises(StoreUnavailableError):
            await content(store, key)

    async def test_only_the_owner_may_read(self, store: DirectoryArtifacts, root: Path) -> None:
        key, _, _ = await kept(store, b"x")
        assert (root / key).stat().st_mode & 0o077 == 0
        assert (root / key).parent.stat().st_mode & 0o077 == 0

    async def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        script = (
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from farm.stores.artifacts import DirectoryArtifacts\n"
            "async def main():\n"
            "    store = DirectoryArtifacts(Path(sys.argv[1]), max_bytes=10**7)\n"
            "    async with store.create('j1') as file:\n"
            "        await file.write(bytes(10**6))\n"
            "        print('written', flush=True)\n"
            "        await asyncio.Event().wait()\n"
            "asyncio.run(main())\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script, str(root)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            told = writer.stdout.readline()
            DirectoryArtifacts(root, max_bytes=1)
            while_it_writes = files(root)
            writer.kill()
        assert told == b"written\n"
        assert len(while_it_writes) == 1
        key, _, _ = await kept(store, b"x")
        DirectoryArtifacts(root, max_bytes=1)
        assert files(root) == [root / key]

    async def test_with_too_little_room_nothing_is_begun(self, root: Path) -> None:
        store = DirectoryArtifacts(root, max_bytes=MB, min_free_bytes=1 << 60)
        with pytest.raises(ArtifactStoreFullError):
            await kept(store, b"x")
        assert files(root) == []

    async def test_a_file_that_can_grow_no_more_is_a_full_store_and_is_removed(
        self, store: DirectoryArtifacts, root: Path
    ) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MB // 2, hard))
        try:
            with pytest.raises(ArtifactStoreFullError):
                await kept(store, bytes(MB))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        assert files(root) == []

    def test_a_root_that_can_not_be_made_is_an_unavailable_store(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreUnavailableError):
            DirectoryArtifacts(tmp_path / "file" / "artifacts", max_bytes=MB)


class TestFullDisk:
    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        """A file system of 1 MiB."""
        if os.geteuid() != 0:
            pytest.skip("only root may mount")
        point = tmp_path / "small"
        point.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(point)]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        yield point
        subprocess.run(["umount", str(point)], check=True)

    @pytest.mark.parametrize("size", [MB - 100_000, 4 * MB], ids=["at commit", "while writing"])
    async def test_a_full_disk_is_a_full_store_and_its_room_is_given_back(
        self, small_disk: Path, size: int
    ) -> None:
        store = DirectoryArtifacts(small_disk, max_bytes=10 * MB)
        (small_disk / "ballast").write_bytes(bytes(900_000))
        with pytest.raises(ArtifactStoreFullError, match="No space left"):
            await kept(store, *[bytes(50_000)] * (size // 50_000))
        assert files(small_disk) == [small_disk / "ballast"]
        (small_disk / "ballast").unlink()
        key, _, _ = await kept(store, bytes(800_000))
        assert len(await content(store, key)) == 800_000

    async def test_no_file_is_begun_below_the_watermark(self, small_disk: Path) -> None:
        store = DirectoryArtifacts(small_disk, max_bytes=MB, min_free_bytes=500_000)
        await kept(store, bytes(400_000))
        await kept(store, bytes(200_000))
        with pytest.raises(ArtifactStoreFullError, match="bytes are free"):
            await kept(store, b"x")
