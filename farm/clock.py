"""The only module of the coordinator that reads the clock."""

import time
from collections.abc import Callable

from farm.core.model import Instant

Clock = Callable[[], Instant]


def system_clock() -> Instant:
    """Return the wall clock's time, in seconds since the Unix epoch."""
    return Instant(time.time())


def steady_clock() -> float:
    """Return seconds that only grow, from a beginning that means nothing."""
    return time.monotonic()
