"""What jobs wait for and what they do, told alike by every coordinator that shares them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farm.clock import Clock
from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import Instant
from farm.jobs.explaining import Explain, waiting_for
from farm.jobs.ports import Dispatcher, Progress, Waiting
from farm.stores.ports.backlog import Backlog
from farm.stores.records import Job

_BELIEVED_S = 1.0
"""For so long why jobs wait is believed without another look, where others may have them begun."""
_RUNS = (JobState.RUNNING, JobState.CANCELLING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is known of one job beside what the ledger keeps of it."""

    waiting: Waiting | None = None
    progress: Progress | None = None


class Readings:
    """Asks this coordinator's dispatcher, and beyond that what is there for all.

    Args:
        dispatcher: Knows what it has looked at, and what it has in hand.
        queue: Knows what all have in hand.
        explain: Says why a request would get nothing now.
        clock: The time.
        shared: Other coordinators begin jobs of the same queue, on the agents linked to them. Each
            one's own reason is then about its own agents; what is told is about all.
    """

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        queue: Backlog,
        explain: Explain,
        clock: Clock,
        shared: bool = False,
    ) -> None:
        self._dispatcher = dispatcher
        self._queue = queue
        self._explain = explain
        self._clock = clock
        self._shared = shared
        self._known: dict[str, tuple[Instant, Waiting]] = {}

    async def of(self, jobs: Sequence[Job]) -> Mapping[str, Reading]:
        """Return what is known of jobs, by their ids."""
        keys = {job.match_key for job in jobs if _waits(job)}
        waiting = {key: await self.waiting(key) for key in sorted(keys)}
        progress = await self._progress([job for job in jobs if job.state in _RUNS])
        return {
            job.job_id: Reading(
                waiting=waiting[job.match_key] if _waits(job) else None,
                progress=progress.get(job.job_id),
            )
            for job in jobs
        }

    async def of_one(self, job: Job) -> Reading:
        """Return what is known of one job."""
        return (await self.of([job]))[job.job_id]

    async def waiting(self, match_key: str) -> Waiting | None:
        """Tell why queued jobs of one kind wait; None where none does, or nobody has looked yet."""
        waiting = self._dispatcher.waiting(match_key)
        return None if waiting is None else await self._for_all(match_key, waiting)

    async def unserved(self) -> Mapping[str, Waiting]:
        """Tell of every kind that waits, by match key."""
        waiting = self._dispatcher.unserved()
        return {key: await self._for_all(key, one) for key, one in waiting.items()}

    async def _for_all(self, match_key: str, waiting: Waiting) -> Waiting:
        """Return why no coordinator can have it begun, where others may begin it, too."""
        if not self._shared or waiting.request is None:
            return waiting
        now = self._clock()
        self._known = {key: one for key, one in self._known.items() if one[0] > now}
        if match_key not in self._known:
            asked = replace(waiting.request, through=None)
            _, verdict = await self._explain(asked)
            until = Instant(now + _BELIEVED_S)
            self._known[match_key] = (until, waiting_for(asked, verdict))
        return self._known[match_key][1]

    async def _progress(self, jobs: Sequence[Job]) -> Mapping[str, Progress]:
        """Tell what running jobs do; what is not in hand here is read where all can read it."""
        here = {job.job_id: self._dispatcher.progress(job.job_id) for job in jobs}
        found = {job_id: progress for job_id, progress in here.items() if progress is not None}
        elsewhere = [job for job in jobs if job.job_id not in found]
        if not elsewhere:
            return found
        steps = await self._queue.steps_now([job.job_id for job in elsewhere])
        for job in elsewhere:
            if (step := steps.get(job.job_id)) is not None:
                found[job.job_id] = Progress(
                    step_index=step["index"],
                    step=step["label"],
                    verb=step["verb"],
                    steps=len(job.spec["steps"]),
                )
        return found


def _waits(job: Job) -> bool:
    return job.state is JobState.QUEUED and job.control is Control.AUTOMATION
