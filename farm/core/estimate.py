"""When a job in the queue may begin, from how long others that asked for the same have taken."""

from collections.abc import Sequence
from statistics import median

_FEW = 3
"""Of fewer nothing is said."""


def begins_within_s(durations_s: Sequence[float], *, ahead: int, slots: int) -> float | None:
    """Return by when it should have begun, if those before it take as long as the latest did.

    Args:
        durations_s: How long the latest took.
        ahead: How many are to begin before it.
        slots: How many of them run at once; all are taken.
    """
    if len(durations_s) < _FEW or slots < 1:
        return None
    return median(durations_s) * (ahead // slots + 1)
