"""Tells who follows the farm of work that waits because nobody can take it now."""

from dataclasses import asdict

from farm.jobs.ports import Waiting
from farm.stores.ports.cluster_events import ClusterEvents, EventKind
from farm.stores.records import Job


class Parking:
    """Says so when jobs of one kind begin to wait, and when the reason is another."""

    def __init__(self, events: ClusterEvents) -> None:
        self._events = events

    def parked(self, job: Job, waiting: Waiting, before: Waiting | None) -> None:
        """A job could not be placed; before this look its kind waited for this, or not at all."""
        if before is not None and (before.reason, before.pool) == (waiting.reason, waiting.pool):
            return
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
