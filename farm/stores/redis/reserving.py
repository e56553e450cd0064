"""How whatever is reserved on an agent is reserved."""

from asyncio import CancelledError
from contextlib import suppress
from secrets import token_hex

from farm.core.model import Instant, ReservationId
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Site
from farm.errors import StoreUnavailableError
from farm.stores.redis.shard import RedisShard


class RedisReserving(RedisShard):
    """What `RedisWindows` and `RedisSlots` share."""

    async def _reserve(
        self, site: Site, now: Instant, *asked: str | int, identity: str | None = None
    ) -> Reservation | Denial:
        reservation_id = ReservationId(token_hex(12))
        try:
            outcome, *epoch = await self.run(
                f"reserve_{site.need}",
                site.client_id,
                repr(now),
                repr(self._window_s),
                repr(now + self._reservation_timeout_s),
                reservation_id,
                *asked,
                *(() if identity is None else (identity,)),
            )
        except CancelledError:
            # It may have been made, and nobody else knows its id.
            with suppress(StoreUnavailableError):
                await self.run("cancel", site.client_id, reservation_id)
            raise
        if outcome != "ok":
            return Denial(outcome)
        return Reservation(
            reservation_id=reservation_id, site=site, epoch=int(epoch[0]), identity=identity
        )
