"""Artifacts in a directory: one folder a job, one file an artifact, visible only when complete."""

import asyncio
import errno
import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from farm.core.model import Instant
from farm.errors import ArtifactStoreFullError, NotFoundError, StoreUnavailableError
from farm.stores.artifacts import folders
from farm.stores.artifacts.rules import (
    MARK,
    folder_of,
    is_key,
    new_key,
    require_key,
    require_size,
)

_CHUNK = 256 * 1024
_INCOMING = ".incoming"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DirectoryArtifacts:
    """The `ArtifactStore` port over a local directory.

    A file is written under `root/.incoming` and moved to its place by `commit`, after its bytes
    are on the disk. What a crash left there is removed when the store is next made; a file that
    another process is still writing is known by its lock and stays.

    Args:
        root: The directory; made if missing, for this user only.
        max_bytes: How large one file may be.
        min_free_bytes: With less room than this on the disk no file is begun.
        min_free_inodes: With fewer free inodes neither, where the file system has a number of them.

    Raises:
        StoreUnavailableError: If the directory can't be made or read.
    """

    def __init__(
        self, root: Path, *, max_bytes: int, min_free_bytes: int = 0, min_free_inodes: int = 0
    ) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._least = min_free_bytes, min_free_inodes
        with _translated("the artifact directory can't be used"):
            (root / _INCOMING).mkdir(mode=0o700, parents=True, exist_ok=True)
            for left_over in (root / _INCOMING).iterdir():
                _remove_unless_locked(left_over)

    @asynccontextmanager
    async def create(self, job_id: str) -> AsyncIterator["DirectoryFile"]:
        """Begin a file of a job.

        Raises:
            ArtifactStoreFullError: If there is less room than `min_free_bytes`, or none.
        """
        key = new_key(job_id)
        target = self._root / key
        partial = _Partial(self._root / _INCOMING / target.name, target, self._least)
        file = DirectoryFile(partial, key, self._max_bytes)
        try:
            await asyncio.to_thread(partial.open)
            yield file
        finally:
            if not file.committed:
                # Begun before the wait for it, so done even where this task is being cancelled.
                await asyncio.to_thread(partial.discard)

    async def remove(self, job_id: str) -> None:
        """Remove every file of a job. Raises StoreUnavailableError."""
        await asyncio.to_thread(folders.remove, self._root / folder_of(job_id))

    async def discard(self, key: str) -> None:
        """Remove one file. Raises StoreUnavailableError."""
        if is_key(key):
            await asyncio.to_thread(folders.discard, self._root / key)

    async def remove_old(self, job_id: str, *, before: Instant) -> int:
        """Remove a job's files that were made before a moment. Raises StoreUnavailableError."""
        return await asyncio.to_thread(folders.remove_old, self._root / folder_of(job_id), before)

    async def size(self, job_id: str) -> int:
        """Return how many bytes a job's files have. Raises StoreUnavailableError."""
        return await asyncio.to_thread(folders.size, self._root / folder_of(job_id))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a file's bytes in pieces of at most 256 KiB. Raises NotFoundError."""
        require_key(key)
        file = await asyncio.to_thread(_open_to_read, self._root / key)
        with file:
            while chunk := await asyncio.to_thread(_read, file):
                yield chunk

    async def number(self) -> int:
        """Return the directory's number, which whoever comes first leaves there as a whole."""
        return await asyncio.to_thread(_number_in, self._root)


class DirectoryFile:
    """A file being written. Small pieces are gathered, so that each hop to a thread is worth it."""

    def __init__(self, partial: "_Partial", key: str, max_bytes: int) -> None:
        self._partial = partial
        self._key = key
        self._max_bytes = max_bytes
        self._size = 0
        self._waiting = bytearray()
        self.committed = False

    async def write(self, chunk: bytes) -> None:
        """Append. Raises TooLargeError, ArtifactStoreFullError (maybe only at `commit`)."""
        self._size += len(chunk)
        require_size(self._size, self._max_bytes)
        self._waiting += chunk
        if len(self._waiting) >= _CHUNK:
            full, self._waiting = self._waiting, bytearray()
            await asyncio.to_thread(self._partial.append, full)

    async def commit(self) -> tuple[str, int, str]:
        """Make it durable and visible; return (key, size in bytes, sha256)."""
        rest, self._waiting = self._waiting, bytearray()
        sha256 = await asyncio.to_thread(self._partial.keep, rest)
        self.committed = True
        return self._key, self._size, sha256


class _Partial:
    """The file behind a `DirectoryFile`; every method is called in a thread.

    A cancelled task leaves its thread at work, so `discard` may come while another method is in
    the middle, or before it has begun: the lock lets it finish, or finds the file discarded.
    """

    def __init__(self, path: Path, target: Path, least: tuple[int, int]) -> None:
        self._path = path
        self._target = target
        self._least = least
        self._lock = threading.Lock()
        self._sha256 = hashlib.sha256()
        self._fd: int | None = None
        self._ended = False

    def open(self) -> None:
        with self._lock, _translated("the artifact can't be begun"):
            if self._ended:
                return
            _require_room(self._path.parent, *self._least)
            self._fd = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def append(self, data: bytearray) -> None:
        with self._lock, _translated("the artifact can't be written"):
            self._append(data)

    def keep(self, rest: bytearray) -> str:
        with self._lock, _translated("the artifact can't be kept"):
            fd = self._append(rest)
            os.fsync(fd)
            folder = self._target.parent
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
                _fsync_directory(folder.parent)
            self._path = self._path.rename(self._target)
            _fsync_directory(folder)
            self._close()
            return self._sha256.hexdigest()

    def discard(self) -> None:
        """Remove the file, wherever it has got to; never raises."""
        with self._lock, suppress(OSError):
            self._ended = True
            self._path.unlink(missing_ok=True)
            self._close()

    def _append(self, data: bytearray) -> int:
        if self._fd is None:
            raise ValueError("the file is not open any more")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self._sha256.update(data)
        return self._fd

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _require_room(folder: Path, min_free_bytes: int, min_free_inodes: int) -> None:
    if min_free_bytes <= 0 and min_free_inodes <= 0:
        return
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free < min_free_bytes:
        raise ArtifactStoreFullError(
            f"only {free} bytes are free where artifacts are kept", free=free, least=min_free_bytes
        )
    if disk.f_files and disk.f_favail < min_free_inodes:
        raise ArtifactStoreFullError(
            f"only {disk.f_favail} inodes are free where artifacts are kept",
            free=disk.f_favail,
            least=min_free_inodes,
        )


def _number_in(folder: Path) -> int:
    path, own = folder / MARK, folder / f"{MARK}.{secrets.token_hex(8)}"
    with _translated("the artifact directory can't be used"):
        own.write_text(f"{secrets.randbits(62)}")
        try:
            with suppress(FileExistsError):
                os.link(own, path)
        finally:
            own.unlink()
        return int(path.read_text())


def _open_to_read(path: Path) -> BinaryIO:
    with _translated("the artifact can't be read"):
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        except FileNotFoundError:
            raise NotFoundError(f"no artifact {path.parent.name}/{path.name}") from None


def _read(file: BinaryIO) -> bytes:
    with _translated("the artifact can't be read"):
        return file.read(_CHUNK)


def _fsync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove_unless_locked(path: Path) -> None:
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        finally:
            os.close(fd)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ArtifactStoreFullError(f"{what}: {error.strerror}") from error
        raise StoreUnavailableError(f"{what}: {error}") from error
