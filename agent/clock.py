"""The only module of the agent that reads the clocks."""

import time


def wall_clock() -> float:
    """Return the wall clock's time, in seconds since the Unix epoch; for people to read."""
    return time.time()


def monotonic() -> float:
    """Return a clock that never jumps, in seconds; for measuring and waiting."""
    return time.monotonic()
