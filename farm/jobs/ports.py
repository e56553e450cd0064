"""What the API and the job service need from whatever hands jobs to workers."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why queued jobs of one kind have not begun; a reading of one moment."""

    reason: str
    """Such as `requirements_not_met`; the values are part of the public API."""
    remedy: str | None = None
    """What would let it begin, if that is known."""
    detail: str = ""


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

    def cancel(self, job_id: str) -> None:
        """A running job has been marked for cancelling in the ledger; stop its attempt."""
        ...

    def waiting(self, match_key: str) -> Waiting | None:
        """Tell why queued jobs of one kind wait; None where none does, or nobody has looked yet."""
        ...

    def progress(self, job_id: str) -> Progress | None:
        """Tell what a running job is doing; None where it does not run, or has not said."""
        ...
