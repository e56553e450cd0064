"""Deleting jobs: those that somebody wants deleted, and those that ended long enough ago."""

from collections.abc import Awaitable, Callable, Iterable

import structlog
from prometheus_client import CollectorRegistry, Counter

from farm.clock import Clock
from farm.core.model import Instant, Namespace
from farm.errors import StoreUnavailableError
from farm.jobs.handed_in import HandedIn
from farm.stores.ports.artifacts import ArtifactStore
from farm.stores.ports.retention import JobRetention

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_BATCH = 50
"""So many jobs are deleted in one transaction: what others write waits no longer than that."""


class Retention:
    """Deletes rows first and then files, of which it is written down that they are to go.

    Args:
        store: Deletes the rows.
        artifacts: Where the files are.
        handed_in: The files that no job has made.
        namespaces: Whose those are.
        clock: The time.
        keep_s: A job that has ended is kept for so long; None is for ever.
        metrics: Where deleted jobs are counted.
    """

    def __init__(
        self,
        store: JobRetention,
        artifacts: ArtifactStore,
        handed_in: HandedIn,
        namespaces: Callable[[], Awaitable[Iterable[Namespace]]],
        clock: Clock,
        *,
        keep_s: float | None,
        metrics: CollectorRegistry,
    ) -> None:
        self._store = store
        self._artifacts = artifacts
        self._handed_in = handed_in
        self._namespaces = namespaces
        self._clock = clock
        self._keep_s = keep_s
        self._deleted = Counter(
            "farm_jobs_deleted",
            "Jobs that were deleted: as they were old, or as somebody wanted it.",
            ["why"],
            registry=metrics,
        )
        for why in ("old", "asked"):
            self._deleted.labels(why)

    async def delete(self, namespace: Namespace, job_id: str, *, by: str = "") -> None:
        """Delete a job that has ended, with its records, history and files; `by` is who wants it.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it has not ended; one that is uncertain is to be decided first.
        """
        await self._store.delete(namespace, job_id)
        log.info("job.deleted", job_id=job_id, namespace=namespace, by=by)
        self._deleted.labels("asked").inc()
        await self._remove_files([job_id])

    async def sweep(self) -> None:
        """Delete what has been kept long enough, and the files that are left of what was deleted.

        Raises:
            StoreUnavailableError: If a store can't be asked; what is left is done at the next one.
        """
        if self._keep_s is not None:
            await self._delete_old(Instant(self._clock() - self._keep_s))
        while job_ids := await self._store.discarded(limit=_BATCH):
            if not await self._remove_files(job_ids):
                break
        if removed := await self._handed_in.sweep(self._namespaces):
            log.info("files.deleted", files=removed)

    async def _delete_old(self, before: Instant) -> None:
        total = 0
        while deleted := await self._store.delete_ended(before=before, limit=_BATCH):
            self._deleted.labels("old").inc(deleted)
            total += deleted
        if total:
            log.info("jobs.deleted", jobs=total)

    async def _remove_files(self, job_ids: Iterable[str]) -> bool:
        """Remove the files of deleted jobs; False if some are left, which is remembered."""
        gone: list[str] = []
        whole = True
        for job_id in job_ids:
            try:
                await self._artifacts.remove(job_id)
            except StoreUnavailableError as error:
                log.warning("job.files_left", job_id=job_id, reason=error.detail)
                whole = False
            else:
                gone.append(job_id)
        await self._store.files_gone(gone)
        return whole
