"""Ctrl-C and SIGTERM: the first asks to end in order, the second ends at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What the person, or the system, asked for so far."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        """Set by the first signal."""


@contextmanager
def interrupts(at_once: Callable[[], None]) -> Iterator[Interrupts]:
    """Collect signals while inside, in the task that enters.

    The second signal calls `at_once` and cancels that task; later ones do so again.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    state = Interrupts()

    def received() -> None:
        if not state.first.is_set():
            state.first.set()
            return
        at_once()
        if task is not None:
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, received)
    try:
        yield state
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
