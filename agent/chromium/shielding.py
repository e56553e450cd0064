"""Waiting that survives cancellation, for what must not be left half done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def _nothing() -> None: ...


async def to_the_end(
    work: Coroutine[Any, Any, T], *, hurry: Callable[[], None] = _nothing, name: str = "shielded"
) -> T:
    """Await `work` to its end, however often we are cancelled; only then pass the cancellation on.

    Playwright's start and stop dead-lock when they are cancelled. `hurry` is called on each
    cancellation, to make the work end sooner by other means.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            hurry()
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen, so that asyncio does not call it forgotten
        raise cancelled
    return task.result()


async def within(seconds: float, work: Awaitable[object]) -> bool:
    """Await `work` for at most so long, then cancel it; tell whether it ended by itself."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True
