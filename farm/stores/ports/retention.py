"""What becomes of jobs that have ended, and are wanted no more."""

from collections.abc import Sequence
from typing import Protocol

from farm.core.model import Instant, Namespace


class JobRetention(Protocol):
    """Deletes jobs of the ledger with all that was written of them. Each method is one transaction.

    In that transaction it is remembered which files are to go, until somebody says that they have.
    """

    async def delete(self, namespace: Namespace, job_id: str) -> None:
        """Delete one job.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it has not ended; one that is uncertain has not.
        """
        ...

    async def delete_ended(self, *, before: Instant, limit: int) -> int:
        """Delete jobs that ended at `before` or earlier, the oldest first; return how many.

        At most `limit`. While another coordinator is at it, none.
        """
        ...

    async def delete_recordings(self, *, before: Instant, limit: int) -> int:
        """Delete recordings, made at `before` or earlier, of jobs that have ended; return how many.

        At most `limit`. While another coordinator is at it, none.
        """
        ...

    async def discarded(self, *, limit: int) -> Sequence[str]:
        """Return what files may not be gone: ids of deleted jobs, and keys of single files."""
        ...

    async def files_gone(self, what: Sequence[str]) -> None:
        """Note that these are gone."""
        ...
