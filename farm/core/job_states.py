"""The life of a job and of an attempt, as tables; docs and tests are made from them."""

from collections.abc import Mapping
from enum import StrEnum


class JobState(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNCERTAIN = "uncertain"


class AttemptState(StrEnum):
    """Where an attempt is."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


class JobEvent(StrEnum):
    """What can happen to a job."""

    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    TIME_OUT = "time_out"
    CANCEL = "cancel"
    """A person wants it stopped."""
    STOPPED = "stopped"
    """The attempt that was to be cancelled is gone."""
    DOUBT = "doubt"
    """An effect was begun and nobody can tell whether it finished."""
    RESOLVE_SUCCEEDED = "resolve_succeeded"
    RESOLVE_FAILED = "resolve_failed"
    AGAIN = "again"
    """A person wants what has ended without success to be run again."""


class IllegalTransitionError(Exception):
    """An event arrived in a state that does not expect it."""

    def __init__(self, state: JobState, event: JobEvent) -> None:
        super().__init__(f"a job cannot {event} while {state}")
        self.state = state
        self.event = event


_ENDED: Mapping[JobEvent, JobState] = {JobEvent.AGAIN: JobState.QUEUED}

JOB: Mapping[JobState, Mapping[JobEvent, JobState]] = {
    JobState.QUEUED: {
        JobEvent.START: JobState.RUNNING,
        JobEvent.CANCEL: JobState.CANCELLED,
    },
    JobState.RUNNING: {
        JobEvent.SUCCEED: JobState.SUCCEEDED,
        JobEvent.FAIL: JobState.FAILED,
        JobEvent.RETRY: JobState.QUEUED,
        JobEvent.TIME_OUT: JobState.TIMED_OUT,
        JobEvent.CANCEL: JobState.CANCELLING,
        JobEvent.DOUBT: JobState.UNCERTAIN,
    },
    JobState.CANCELLING: {
        JobEvent.SUCCEED: JobState.SUCCEEDED,
        JobEvent.STOPPED: JobState.CANCELLED,
        JobEvent.FAIL: JobState.FAILED,
        JobEvent.CANCEL: JobState.CANCELLING,
        JobEvent.DOUBT: JobState.UNCERTAIN,
    },
    JobState.UNCERTAIN: {
        JobEvent.RETRY: JobState.QUEUED,
        JobEvent.RESOLVE_SUCCEEDED: JobState.SUCCEEDED,
        JobEvent.RESOLVE_FAILED: JobState.FAILED,
    },
    JobState.SUCCEEDED: {},
    JobState.FAILED: _ENDED,
    JobState.CANCELLED: _ENDED,
    JobState.TIMED_OUT: _ENDED,
}

TERMINAL: frozenset[JobState] = frozenset(
    state for state, row in JOB.items() if row.keys() <= _ENDED.keys()
)
"""States nothing leads out of, but that a person wants it run again. `uncertain` is not one: it
waits for a decision."""

AT_REST: frozenset[JobState] = TERMINAL | {JobState.UNCERTAIN}
"""States in which the farm does nothing more by itself."""


def step(state: JobState, event: JobEvent) -> JobState:
    """Apply an event, or raise `IllegalTransitionError` and change nothing."""
    try:
        return JOB[state][event]
    except KeyError:
        raise IllegalTransitionError(state, event) from None
