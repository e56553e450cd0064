"""Slots taken on agents, before it is said for which context."""

from farm.core.model import Assignment, ClientId, ContextId, Instant, Request
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need, Site
from farm.stores.redis import records
from farm.stores.redis.reserving import RedisReserving


class RedisSlots(RedisReserving):
    """The `Slots` port."""

    async def select_and_reserve(self, request: Request, *, now: Instant) -> Reservation | None:
        """See `Slots.select_and_reserve`. One round trip."""
        asked = (records.request_text(request), repr(now), repr(self._window_s))
        reservation_id, reply = await self._run_reserving("select_slot", asked, now=now)
        outcome, *taken = reply
        if outcome != "ok":
            return None
        client_id, epoch = taken
        site = Site(client_id=ClientId(client_id), need=Need.SLOT)
        return Reservation(reservation_id=reservation_id, site=site, epoch=int(epoch))

    async def reserve_worker(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """See `Slots.reserve_worker`."""
        site = Site(client_id=client_id, need=Need.SLOT)
        return await self._reserve(site, now, records.request_text(request))

    async def workers_for(self, request: Request, *, now: Instant) -> tuple[ClientId, ...]:
        """See `Slots.workers_for`."""
        text = records.request_text(request)
        _, found = await self.run("workers_for", text, repr(now), repr(self._window_s))
        return tuple(map(ClientId, found))

    async def commit(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        reservation: Reservation | None,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `Slots.commit`."""
        outcome, *text = await self.run(
            "commit",
            client_id,
            context_id,
            records.request_text(request),
            repr(now),
            repr(self._window_s),
            repr(now + timeout_s),
            "" if reservation is None else reservation.reservation_id,
        )
        return records.assignment_from(text[0]) if outcome == "ok" else Denial(outcome)
