"""Redis's clock, which all coordinators of one Redis share."""

import asyncio
from collections.abc import Callable

import structlog
from redis.asyncio import Redis

from farm.core.model import Instant
from farm.errors import StoreUnavailableError
from farm.stores.redis.connection import store_errors

log = structlog.get_logger()


class RedisClock:
    """A `farm.clock.Clock` that shows the time of Redis.

    The registry's methods take `now`, as every store's; whoever calls them over Redis takes it
    from one of these, so that all coordinators mean the same moment. Between readings of TIME the
    process's own steady clock counts on; the error is half a round trip, and what the two clocks
    drift apart in one period.

    Args:
        redis: A client from `connect`.
        steady: A clock that never jumps, such as `farm.clock.steady_clock`.
    """

    def __init__(self, redis: Redis, *, steady: Callable[[], float]) -> None:
        self._redis = redis
        self._steady = steady
        self._offset_s: float | None = None

    def __call__(self) -> Instant:
        """Return the time of Redis, as well as is known.

        Raises:
            StoreUnavailableError: If it has never been read.
        """
        if self._offset_s is None:
            raise StoreUnavailableError("the time of Redis has not been read yet")
        return Instant(self._steady() + self._offset_s)

    async def read(self) -> None:
        """Read TIME once; to be awaited before the first use.

        Raises:
            StoreUnavailableError: If Redis did not answer.
        """
        before = self._steady()
        with store_errors():
            seconds, micros = await self._redis.time()
        middle = (before + self._steady()) / 2
        self._offset_s = seconds + micros / 1e6 - middle

    async def run(self, *, every_s: float = 10.0) -> None:
        """Read TIME again and again, until cancelled; while it can't be read, count on."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.read()
            except StoreUnavailableError as error:
                log.warning("clock.not_read", reason=error.detail)
