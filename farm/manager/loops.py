"""What the coordinator does without being asked. `main` runs each in the one task group.

A loop survives what it names and nothing else: any other exception ends the process, and whoever
supervises it starts it again from the ledger.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from farm.errors import StoreUnavailableError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def every(seconds: float, step: Callable[[], Awaitable[object]], *, name: str) -> None:
    """Do `step` again and again, `seconds` apart, for ever."""
    with structlog.contextvars.bound_contextvars(loop=name):
        while True:
            try:
                await step()
            except StoreUnavailableError as error:
                log.warning("loop.skipped", reason=error.detail)
            await asyncio.sleep(seconds)
