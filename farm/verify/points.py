"""The nine points of a useful deployment verification."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from farm.verify.choosing import (
    absent_clients_are_not_selected,
    one_context_is_lent_once,
    requirements_admit_whom_they_mean,
)
from farm.verify.creating import creation_keeps_to_the_limits, only_the_elected_creates
from farm.verify.holding import (
    a_disconnect_releases_its_own,
    only_abandoned_work_is_swept,
    stale_handles_do_nothing,
)
from farm.verify.outcomes import Seen
from farm.verify.retrying import a_retry_waits_for_evidence
from farm.verify.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing to be proven: `prove` returns, or raises that it is refuted or unproven."""

    number: int
    claim: str
    prove: Callable[[Stage, Seen], Awaitable[None]]


POINTS: tuple[Point, ...] = tuple(
    Point(number=number, claim=claim, prove=prove)
    for number, (claim, prove) in enumerate(
        (
            (
                "disconnected clients cannot be selected even when an old context snapshot exists",
                absent_clients_are_not_selected,
            ),
            (
                "metadata requirements admit only the intended clients",
                requirements_admit_whom_they_mean,
            ),
            (
                "two concurrent callers cannot acquire the same context",
                one_context_is_lent_once,
            ),
            (
                "a stale handle cannot send, renew, or release a later task's assignment",
                stale_handles_do_nothing,
            ),
            (
                "legitimate long work renews before the timeout and abandoned work is released",
                only_abandoned_work_is_swept,
            ),
            (
                "disconnect handling releases exactly the selected client's tasks",
                a_disconnect_releases_its_own,
            ),
            (
                "browser creation respects negotiated window and tab limits",
                creation_keeps_to_the_limits,
            ),
            (
                "only the elected process auto-provisions browser resources",
                only_the_elected_creates,
            ),
            (
                "task retry waits for the evidence required by the side-effect policy",
                a_retry_waits_for_evidence,
            ),
        ),
        start=1,
    )
)
