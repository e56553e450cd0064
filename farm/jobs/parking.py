"""Which jobs wait because nobody can take them now, and why."""

from collections.abc import Collection, Mapping
from dataclasses import asdict

from farm.core.census import PoolVerdict
from farm.jobs.ports import Waiting
from farm.stores.ports.cluster_events import ClusterEvents, EventKind
from farm.stores.records import Job


class Parking:
    """By match key, as jobs that ask for the same wait for the same.

    Who follows the farm is told when jobs of a kind begin to wait, and when the reason is another.

    Args:
        events: Where that is told.
        shared: Others begin jobs of the same queue: that their agents would do is no news.
    """

    def __init__(self, events: ClusterEvents, *, shared: bool = False) -> None:
        self._events = events
        self._shared = shared
        self._waiting: dict[str, Waiting] = {}
        self._closed = False

    def close(self) -> None:
        """Nobody waits here any longer."""
        self._closed = True
        self._waiting = {}

    def waiting(self, match_key: str) -> Waiting | None:
        """See `Dispatcher.waiting`."""
        return self._waiting.get(match_key)

    def unserved(self) -> Mapping[str, Waiting]:
        """See `Dispatcher.unserved`."""
        return dict(self._waiting)

    def park(self, job: Job, waiting: Waiting) -> None:
        """Say why jobs of this kind wait."""
        if self._closed:
            return
        before = self._waiting.get(job.match_key)
        self._waiting[job.match_key] = waiting
        if self._shared and waiting.pool is PoolVerdict.POLLERS_LINKED_ELSEWHERE:
            return
        if before is None or (before.reason, before.pool) != (waiting.reason, waiting.pool):
            self._tell(job, waiting)

    def keep(self, keys: Collection[str]) -> None:
        """Forget why others wait: they do so no more."""
        self._waiting = {key: why for key, why in self._waiting.items() if key in keys}

    def _tell(self, job: Job, waiting: Waiting) -> None:
        request = waiting.request
        self._events.publish(
            EventKind.DISPATCH_PARKED,
            job.namespace,
            {
                "job_id": job.job_id,
                "task_queue": None if request is None else request.task_queue,
                "node": None if request is None else request.node,
                "reason": waiting.reason,
                "verdict": waiting.pool.value,
                "remedy": waiting.remedy,
                "census": None if waiting.census is None else asdict(waiting.census),
            },
        )
