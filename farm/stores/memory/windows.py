"""Windows, tabs and flows being created."""

from farm.core import reservation as rules
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ContextId,
    Instant,
    Request,
    WindowId,
)
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need, Site
from farm.stores.memory.clients import MemoryClients


class MemoryWindows(MemoryClients):
    """The ports `BrowserWindowRegistry` and `PlacedReservations`."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> Reservation | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        return self._reserve_window(client_id, identity, None, now)

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """See `PlacedReservations.reserve_window_for`."""
        return self._reserve_window(client_id, request.identity, request, now)

    def _reserve_window(
        self, client_id: ClientId, identity: str | None, request: Request | None, now: Instant
    ) -> Reservation | Denial:
        client = self._find(client_id, now)
        denial = rules.deny_window(client, now=now, window_s=self._window_s, request=request)
        if denial is None and identity is not None and self._is_taken(identity):
            denial = Denial.TAKEN
        site = Site(client_id=client_id, need=Need.WINDOW)
        return self._reserve_unless(denial, client, site, now, identity)

    def _is_taken(self, identity: str) -> bool:
        return any(
            identity in client.opening_identities
            or any(window.identity == identity for window in client.windows.values())
            for client in self._clients.values()
        )

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """See `BrowserWindowRegistry.reserve_tab`."""
        return self._reserve_tab(client_id, window_id, None, now)

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """See `PlacedReservations.reserve_tab_for`."""
        return self._reserve_tab(client_id, window_id, request, now)

    def _reserve_tab(
        self, client_id: ClientId, window_id: WindowId, request: Request | None, now: Instant
    ) -> Reservation | Denial:
        client = self._find(client_id, now)
        denial = rules.deny_tab(
            client, window_id, now=now, window_s=self._window_s, request=request
        )
        site = Site(client_id=client_id, need=Need.TAB, window_id=window_id)
        return self._reserve_unless(denial, client, site, now)

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> Reservation | Denial:
        """See `PlacedReservations.reserve_flow`."""
        client = self._find(client_id, now)
        denial = rules.deny_flow(client, now=now, window_s=self._window_s)
        site = Site(client_id=client_id, need=Need.FLOW)
        return self._reserve_unless(denial, client, site, now)

    def _reserve_unless(
        self,
        denial: Denial | None,
        client: Client | None,
        site: Site,
        now: Instant,
        identity: str | None = None,
    ) -> Reservation | Denial:
        if denial is not None or client is None:
            return denial or Denial.GONE
        return self._reserve(client, site, now, identity)

    async def cancel(self, reservation: Reservation) -> None:
        """See `Reservations.cancel`."""
        self._give_back(reservation.site.client_id, reservation.reservation_id)

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
        client_id, its_id = reservation.site.client_id, reservation.reservation_id
        client = self._find(client_id, now)
        if client is None:
            return Denial.GONE
        # The slot of the reservation becomes the slot of the assignment: never two, never none.
        without = self._without(client, its_id)
        if without is None:
            held = client.assignments.get(context_id)
            return held if held is not None and held.reservation_id == its_id else Denial.GONE
        if context_id not in client.contexts:
            return Denial.NOT_READY
        denial = rules.deny_assign(request, without, context_id, now=now, window_s=self._window_s)
        if denial is not None:
            return denial
        del self._opening[client_id][its_id]
        assignment = self._hold(
            without, request, context_id, now=now, timeout_s=timeout_s, reservation_id=its_id
        )
        # Since it was reported, what was being created has counted twice.
        self.changed()
        return assignment
