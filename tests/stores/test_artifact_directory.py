"""What only a directory of artifacts can get wrong."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.core.model import Instant
from farm.errors import ArtifactStoreFullError, StoreUnavailableError, TooLargeError
from farm.stores.artifacts import DirectoryArtifacts
from tests.stores.test_artifacts import MB, content, kept


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


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

    async def test_a_files_age_is_since_it_was_written(
        self, store: DirectoryArtifacts, tmp_path: Path
    ) -> None:
        keys = [(await kept(store, b"abc"))[0] for _ in range(3)]
        for seconds, key in enumerate(keys):
            os.utime(tmp_path / "artifacts" / key, (seconds, seconds))
        assert await store.remove_old("j1", before=Instant(2.0)) == 2
        assert await store.remove_old("j1", before=Instant(2.0)) == 0
        assert await store.remove_old("j2", before=Instant(2.0)) == 0
        assert await content(store, keys[2]) == b"abc"

    async def test_what_can_not_be_removed_is_said(
        self, store: DirectoryArtifacts, tmp_path: Path
    ) -> None:
        await kept(store, b"abc")
        (tmp_path / "artifacts" / "j1" / "a-folder").mkdir()
        with pytest.raises(StoreUnavailableError):
            await store.remove("j1")

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
