"""Redis's clock, which all coordinators of one Redis share."""

import asyncio
from collections.abc import Callable

import structlog
from redis.asyncio import Redis

from farm.core.model import Instant
from farm.errors import StoreUnavailableError
from farm.stores.redis.connection import store_errors

log = structlog.get_logger()

_FINE_S = 0.02
_TRIES = 5
"""So often TIME is read at first, for an answer that comes as quickly."""
_DRIFT = 0.001
"""What two clocks may drift apart, at most: a share of the time that passes."""


class RedisClock:
    """A `farm.clock.Clock` that shows the time of Redis.

    The registry's methods take `now`, as every store's; whoever calls them over Redis takes it
    from one of these, so that all coordinators mean the same moment. Between readings of TIME the
    process's own steady clock counts on. An answer that took long says little, and undoes nothing
    that a quick one has said: the error is half of the quickest round trip, and what the two clocks
    drift apart from then on.

    Args:
        redis: A client from `connect`.
        steady: A clock that never jumps, such as `farm.clock.steady_clock`.
    """

    def __init__(self, redis: Redis, *, steady: Callable[[], float]) -> None:
        self._redis = redis
        self._steady = steady
        self._offsets: tuple[float, float] | None = None
        """The least and the most by which Redis is ahead of the steady clock."""
        self._read_at = 0.0

    def __call__(self) -> Instant:
        """Return the time of Redis, as well as is known.

        Raises:
            StoreUnavailableError: If it has never been read.
        """
        if self._offsets is None:
            raise StoreUnavailableError("the time of Redis has not been read yet")
        least, most = self._offsets
        return Instant(self._steady() + (least + most) / 2)

    async def read(self) -> None:
        """Read TIME; to be awaited before the first use.

        Raises:
            StoreUnavailableError: If Redis did not answer.
        """
        for _ in range(_TRIES if self._offsets is None else 1):
            least, most = await self._read()
            if most - least < _FINE_S:
                return

    async def _read(self) -> tuple[float, float]:
        before = self._steady()
        with store_errors():
            seconds, micros = await self._redis.time()
        after, told = self._steady(), seconds + micros / 1e6
        least, most = told - after, told - before
        if self._offsets is not None:
            drift = _DRIFT * (after - self._read_at)
            known_least, known_most = self._offsets[0] - drift, self._offsets[1] + drift
            # Else the clock of Redis was set, or another Redis has taken over.
            if known_least <= most and least <= known_most:
                least, most = max(least, known_least), min(most, known_most)
        self._offsets, self._read_at = (least, most), after
        return least, most

    async def run(self, *, every_s: float = 10.0) -> None:
        """Read TIME again and again, until cancelled; while it can't be read, count on."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.read()
            except StoreUnavailableError as error:
                log.warning("clock.not_read", reason=error.detail)
