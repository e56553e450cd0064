"""What routes work inside a namespace: pools, kinds of work, and who is kept out for now."""

from enum import StrEnum

DEFAULT_QUEUE = "default"
"""The pool of who names none, whether it asks or serves."""
JOB = "job"
"""The activity type of a job's attempt."""


class Exclusion(StrEnum):
    """Why an agent that is connected is not chosen for now."""

    OPENING_PROBATION = "opening_probation"
    """It is new, and has not answered yet."""
    REACHABILITY_LOST = "reachability_lost"
    """It has ceased to answer."""


_MOST_SLOTS = 1_000_000
"""All that are added up are numbers that Redis and Prometheus have exactly."""


def capacity_flaw(max_concurrency: int | None) -> str | None:
    """Say why so many slots can't be announced, or None; None is not announced yet.

    Who takes nothing does not connect, or drains.
    """
    if max_concurrency is not None and max_concurrency < 1:
        return f"max_concurrency is at least 1, not {max_concurrency}"
    if max_concurrency is not None and max_concurrency > _MOST_SLOTS:
        return f"max_concurrency is at most {_MOST_SLOTS}"
    return None


def checked_capacity(max_concurrency: int) -> int:
    """Return it. Raises ValueError if it is no number of slots that can be announced."""
    if flaw := capacity_flaw(max_concurrency):
        raise ValueError(flaw)
    return max_concurrency


def queue_of(name: str | None) -> str:
    """Return the task queue that a name means: no name, or an empty one, is the default queue."""
    return name or DEFAULT_QUEUE
