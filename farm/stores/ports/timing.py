"""The port by which stores say how long they took."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from farm.clock import steady_clock

Observe = Callable[[str, str, float], None]
"""(store, operation, seconds) -> None."""


def unobserved(store: str, operation: str, seconds: float) -> None:
    """Nobody wants to know."""


@contextmanager
def timed(observe: Observe, store: str, operation: str) -> Iterator[None]:
    """Measure what the block does, whether it goes well or not."""
    began = steady_clock()
    try:
        yield
    finally:
        observe(store, operation, steady_clock() - began)
