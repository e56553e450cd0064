"""How whatever is reserved on an agent is reserved, and given back."""

from asyncio import CancelledError
from contextlib import suppress
from secrets import token_hex
from typing import Any

from farm.core.model import ClientId, Instant, ReservationId
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Site
from farm.errors import StoreUnavailableError
from farm.stores.redis.shard import RedisShard


class RedisReserving(RedisShard):
    """What `RedisWindows` and `RedisSlots` share."""

    async def _reserve(
        self, site: Site, now: Instant, *asked: str | int, identity: str | None = None
    ) -> Reservation | Denial:
        before = (site.client_id, repr(now), repr(self._window_s))
        after = (*asked, *(() if identity is None else (identity,)))
        reservation_id, reply = await self._run_reserving(
            f"reserve_{site.need}", before, after, now=now, client_id=site.client_id
        )
        outcome, *epoch = reply
        if outcome != "ok":
            return Denial(outcome)
        return Reservation(
            reservation_id=reservation_id, site=site, epoch=int(epoch[0]), identity=identity
        )

    async def _run_reserving(
        self,
        script: str,
        before: tuple[str, ...],
        after: tuple[str | int, ...] = (),
        *,
        now: Instant,
        client_id: ClientId | None = None,
    ) -> tuple[ReservationId, list[Any]]:
        """Run a script between whose arguments is what reservations.lua `reserve` wants to know."""
        reservation_id = ReservationId(token_hex(12))
        expires_at = repr(now + self._reservation_timeout_s)
        whose = (self._coordinator or "", self._lease_s)
        try:
            reply = await self.run(script, *before, expires_at, reservation_id, *whose, *after)
        except StoreUnavailableError:
            self._unwanted.add(reservation_id)
            raise
        except CancelledError:
            # It may have been made, and nobody else knows its id.
            with suppress(StoreUnavailableError):
                await self._give_back(reservation_id, client_id)
            raise
        return reservation_id, reply

    async def _give_back(self, reservation_id: ReservationId, client_id: ClientId | None) -> None:
        """Give a reservation back if it is open; of which client may not be known.

        Raises:
            StoreUnavailableError: If that can't be done now; it is when expired ones are.
        """
        try:
            if client_id is None:
                await self.run("forget_slot", reservation_id)
            else:
                await self.run("cancel", client_id, reservation_id)
        except BaseException:
            self._unwanted.add(reservation_id)
            raise
