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
        recordings_keep_s: Its recordings are kept for so long; None is as long as the job.
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
        recordings_keep_s: float | None = None,
        metrics: CollectorRegistry,
    ) -> None:
        self._store = store
        self._artifacts = artifacts
        self._handed_in = handed_in
        self._namespaces = namespaces
        self._clock = clock
        self._keep_s = keep_s
        self._recordings_keep_s = recordings_keep_s
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
        if self._recordings_keep_s is not None:
            await self._delete_recordings(Instant(self._clock() - self._recordings_keep_s))
        while discarded := await self._store.discarded(limit=_BATCH):
            if not await self._remove_files(discarded):
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

    async def _delete_recordings(self, before: Instant) -> None:
        total = 0
        while deleted := await self._store.delete_recordings(before=before, limit=_BATCH):
            total += deleted
        if total:
            log.info("recordings.deleted", recordings=total)

    async def _remove_files(self, discarded: Iterable[str]) -> bool:
        """Remove what is to go; False if some of it is left, which is remembered."""
        gone: list[str] = []
        whole = True
        for what in discarded:
            remove = self._artifacts.discard if "/" in what else self._artifacts.remove
            try:
                await remove(what)
            except StoreUnavailableError as error:
                log.warning("job.files_left", files=what, reason=error.detail)
                whole = False
            else:
                gone.append(what)
        await self._store.files_gone(gone)
        return whole
