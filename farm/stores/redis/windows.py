"""Windows, tabs and flows being created."""

from farm.core.model import (
    Assignment,
    ClientId,
    ContextId,
    Instant,
    Request,
    WindowId,
)
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need, Site
from farm.stores.redis import records
from farm.stores.redis.reserving import RedisReserving


class RedisWindows(RedisReserving):
    """The ports `BrowserWindowRegistry` and `PlacedReservations`."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> Reservation | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        site = Site(client_id=client_id, need=Need.WINDOW)
        return await self._reserve(site, now, "", identity=identity)

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """See `PlacedReservations.reserve_window_for`."""
        limit = request.placement.max_windows if request.placement else None
        site = Site(client_id=client_id, need=Need.WINDOW)
        return await self._reserve(site, now, _or_empty(limit), identity=request.identity)

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """See `BrowserWindowRegistry.reserve_tab`."""
        site = Site(client_id=client_id, need=Need.TAB, window_id=window_id)
        return await self._reserve(site, now, window_id)

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """See `PlacedReservations.reserve_tab_for`."""
        limit = request.placement.max_tabs_per_window if request.placement else None
        site = Site(client_id=client_id, need=Need.TAB, window_id=window_id)
        asked = (_or_empty(limit), records.request_text(request))
        return await self._reserve(site, now, window_id, *asked)

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> Reservation | Denial:
        """See `PlacedReservations.reserve_flow`."""
        return await self._reserve(Site(client_id=client_id, need=Need.FLOW), now)

    async def cancel(self, reservation: Reservation) -> None:
        """See `Reservations.cancel`."""
        await self._give_back(reservation.reservation_id, reservation.site.client_id)

    async def settle(
        self,
        request: Request,
        reservation: Reservation,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `Reservations.settle`."""
        outcome, *text = await self.run(
            "settle",
            reservation.site.client_id,
            context_id,
            records.request_text(request),
            repr(now),
            repr(self._window_s),
            repr(now + timeout_s),
            reservation.reservation_id,
        )
        return records.assignment_from(text[0]) if outcome == "ok" else Denial(outcome)


def _or_empty(limit: int | None) -> int | str:
    return "" if limit is None else limit
