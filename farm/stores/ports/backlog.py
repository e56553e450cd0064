"""What is in the queue, and what runs, for who asks why it does not move and how far it is."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from farm.core.model import Instant, Namespace
from farm.stores.records import Job, Queued


class Backlog(Protocol):
    """Reads the jobs as a whole; each method is one reading."""

    async def queued(self, namespace: Namespace, *, first: int, now: Instant) -> Sequence[Queued]:
        """Return the queued jobs of a namespace by match key, that of the oldest job first.

        Of each key the oldest `first` jobs, and how many there are. Jobs that are paused, or not to
        begin yet, are none of them.
        """
        ...

    async def ahead_of(self, job: Job, *, now: Instant) -> int:
        """Count the jobs that ask for the same and are to begin before a queued job."""
        ...

    async def match_keys(self, namespace: Namespace, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the match key of each of these jobs, by its id; what is no job is left out."""
        ...

    async def counts_by_key(self, *, now: Instant) -> Mapping[str, int]:
        """Count the queued jobs of all namespaces by match key."""
        ...

    async def durations_s(self, job: Job, *, latest: int) -> Sequence[float]:
        """Return how long the latest jobs that asked for the same took, from start to success."""
        ...

    async def steps_now(self, job_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return what `step_started` said last of these jobs' running attempts, by job_id."""
        ...
