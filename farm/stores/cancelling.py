"""What a client of a store must not lose."""

import asyncio
import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def cancellations_kept() -> Iterator[None]:
    """Let a cancellation through, whatever else the block ends with.

    Clients of stores may lose one: `asyncio.wait_for` before Python 3.12, by which redis-py sends,
    or what fails while a connection is closed because of it. Whatever asks a store again and again
    would never end.
    """
    task = asyncio.current_task()
    asked_before = 0 if task is None else task.cancelling()
    try:
        yield
    finally:
        if task is not None and task.cancelling() > asked_before:
            raise asyncio.CancelledError
