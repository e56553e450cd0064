"""Orders that come while a tab goes from one page to another, which Chromium refuses for a moment.

The page that goes is no longer active, and the one that comes not yet attached to.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from playwright.async_api import Error as PlaywrightError

T = TypeVar("T")

_TRIES = 20
_PAUSE_S = 0.15


async def once_attached(order: Callable[[], Awaitable[T]]) -> T:
    """Give an order, and again for as long as there is no page to give it to, some seconds at most.

    Raises:
        PlaywrightError: If it fails otherwise, or the tab stays without a page.
    """
    for _ in range(_TRIES - 1):
        try:
            return await order()
        except PlaywrightError as error:
            if "Not attached to an active page" not in str(error):
                raise
        await asyncio.sleep(_PAUSE_S)
    return await order()
