"""What the API and the job service need from whatever hands jobs to workers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from farm.core.census import Census, PoolVerdict
from farm.core.model import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why queued jobs of one kind have not begun; a reading of one moment."""

    reason: str
    """Such as `requirements_not_met`; the values are part of the public API."""
    remedy: str | None = None
    """What would let it begin, if that is known."""
    detail: str = ""
    pool: PoolVerdict = PoolVerdict.NO_IDENTITY_FREE
    """What is the matter with the pool."""
    census: Census | None = None
    """Of the reading that came to nothing; None where no agent was looked at."""
    request: Request | None = None
    """What was asked for; its task is one of the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a running job is doing."""

    step_index: int
    """Counted from 0."""
    step: str
    """The step's name or id, or its verb."""
    verb: str
    steps: int | None = None
    """How many steps the job has."""


class Dispatcher(Protocol):
    """Hands queued jobs to workers. Nothing here waits or raises."""

    def wake(self) -> None:
        """A job may have become startable."""
        ...

    def look_anew(self) -> None:
        """So may jobs that wait have, of which the registry says nothing: rules have changed."""
        ...

    def cancel(self, job_id: str) -> None:
        """A running job has been marked for cancelling in the ledger; stop its attempt."""
        ...

    def waiting(self, match_key: str) -> Waiting | None:
        """Tell why queued jobs of one kind wait; None where none does, or nobody has looked yet."""
        ...

    def unserved(self) -> Mapping[str, Waiting]:
        """Tell of every kind that waits, by match key; nothing once nothing more is begun."""
        ...

    def progress(self, job_id: str) -> Progress | None:
        """Tell what a running job is doing; None where it does not run, or has not said."""
        ...
