"""What a namespace may read of its jobs."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Artifact, Attempt, Effect, Item, Job, JobEvent, JobRecord

PAGE = 500
"""So many lines of a history are read at a time."""


class JobReading:
    """Reads jobs. Of another namespace's nothing is told, not even that they are there (P16).

    What names a job raises NotFoundError where the namespace has none of that id.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def job(self, namespace: Namespace, job_id: str) -> Job:
        """Return one job."""
        return await self._ledger.job(namespace, job_id)

    async def jobs(
        self, namespace: Namespace, *, state: JobState | None, before: str | None, limit: int
    ) -> Sequence[Job]:
        """Return jobs, newest first; `before` is the job_id of the last one seen."""
        return await self._ledger.jobs(namespace, state=state, before=before, limit=limit)

    async def record_of(self, namespace: Namespace, job_id: str) -> JobRecord:
        """Return one job with its attempts, its effects and its whole history."""
        record = await self._ledger.record_of(namespace, job_id, events=PAGE)
        if len(record.events) < PAGE:
            return record
        rest = self.history(namespace, job_id, after=record.events[-1].seq)
        return replace(record, events=[*record.events, *[event async for event in rest]])

    async def attempts(self, namespace: Namespace, job_id: str) -> Sequence[Attempt]:
        """Return a job's attempts in order."""
        return await self._ledger.attempts(job_id, namespace=namespace)

    async def effects(self, namespace: Namespace, job_id: str) -> Sequence[Effect]:
        """Return the effects of a job's attempts, in the order they were told."""
        return await self._ledger.effects(job_id, namespace=namespace)

    async def history(
        self, namespace: Namespace, job_id: str, *, after: int = 0
    ) -> AsyncIterator[JobEvent]:
        """Yield what a job's history has now, after a number."""
        while page := await self._ledger.events(
            job_id, after=after, limit=PAGE, namespace=namespace
        ):
            for event in page:
                yield event
            after = page[-1].seq

    def items(
        self,
        namespace: Namespace,
        job_id: str,
        *,
        attempt: int | None = None,
        every: bool = False,
        dataset: str | None = None,
    ) -> AsyncIterator[Item]:
        """Yield items in order: those of the attempt that counts, of one by number, or all."""
        return self._ledger.items(
            job_id, attempt=attempt, every=every, dataset=dataset, namespace=namespace
        )

    async def artifacts(self, namespace: Namespace, job_id: str) -> Sequence[Artifact]:
        """Return a job's files in order; their bytes are in the artifact store."""
        return await self._ledger.artifacts(job_id, namespace=namespace)
