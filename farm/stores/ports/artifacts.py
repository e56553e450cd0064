"""Where the files of jobs are kept."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from farm.core.model import Instant


class StoredFile(Protocol):
    """A file being written; `commit` makes it visible, leaving without it removes it."""

    async def write(self, chunk: bytes) -> None:
        """Append.

        Raises:
            ArtifactStoreFullError: If there is no room.
            StoreUnavailableError: If the store does not answer.
            TooLargeError: If the file is over the limit.
        """
        ...

    async def commit(self) -> tuple[str, int, str]:
        """Make it durable; return (key, size in bytes, sha256). Raises as `write` does."""
        ...


class ArtifactStore(Protocol):
    """Files, by key. All methods raise StoreUnavailableError."""

    def create(self, job_id: str) -> AbstractAsyncContextManager[StoredFile]:
        """Begin a file of a job."""
        ...

    async def remove(self, job_id: str) -> None:
        """Remove every file of a job; none is no error.

        Raises:
            StoreUnavailableError: If some may be left.
        """
        ...

    async def discard(self, key: str) -> None:
        """Remove one file; none is no error. As `remove` raises."""
        ...

    async def remove_old(self, job_id: str, *, before: Instant) -> int:
        """Remove a job's files that were made before a moment; return how many. As `remove`."""
        ...

    async def size(self, job_id: str) -> int:
        """Return how many bytes a job's files have."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a file's bytes. Raises NotFoundError."""
        ...

    async def number(self) -> int:
        """Return what tells the store from any other; whoever asks first leaves it there."""
        ...
