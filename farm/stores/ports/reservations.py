"""Room that is taken before there is a context in it: windows, tabs, flows and slots."""

from typing import Protocol, runtime_checkable

from farm.core.model import Assignment, ClientId, ContextId, Instant, Request, WindowId
from farm.core.reservation import Denial, Reservation


class Reservations(Protocol):
    """What becomes of room that was reserved for a context; each may be said again."""

    async def cancel(self, reservation: Reservation) -> None:
        """Give an open reservation back. One that is open no more, or unknown, changes nothing."""
        ...

    async def settle(
        self,
        request: Request,
        reservation: Reservation,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """Turn an open reservation into the assignment of its context, in one step.

        Said again, it returns the same assignment for as long as that holds. Denied with GONE where
        the reservation is open no more, and with NOT_READY until the context has been reported;
        what denies it leaves it open.
        """
        ...


class BrowserWindowRegistry(Reservations, Protocol):
    """Windows and tabs being created, counted against the negotiated capacity.

    A reservation is given back, too, with the lease of the coordinator that made it (`Routes`),
    and by `BulkTimeout.release_expired` once it is too old to be still in creation.
    """

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> Reservation | Denial:
        """Reserve a window, its first tab and a slot."""
        ...

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """Reserve a tab in a window, and a slot."""
        ...


@runtime_checkable
class PlacedReservations(Reservations, Protocol):
    """Reservations that keep to what one request asks of windows, and those of console flows."""

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """Do as `reserve_window`, for the request's identity and within its own caps."""
        ...

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        """Do as `reserve_tab`, within the request's own caps.

        Denied with TAKEN where somebody holds the window alone, or the request wants it alone and
        somebody is in it.
        """
        ...

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> Reservation | Denial:
        """Reserve a console flow and a slot."""
        ...


@runtime_checkable
class Slots(Reservations, Protocol):
    """Slots taken on agents before it is said for which context.

    Whose turn it is in a pool (namespace, task queue and activity type) is one cursor, shared by
    all coordinators, by pinned requests and others, and by both ways of choosing. It goes through
    the agents that would do in order of id, and is gone with the last agent of the pool.
    """

    async def select_and_reserve(self, request: Request, *, now: Instant) -> Reservation | None:
        """Take a slot of the next agent in turn that would do and has one; None where none has.

        One step: of many who ask, as many win as there are slots. Only a win moves the cursor.
        """
        ...

    async def reserve_worker(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """Take a slot of this agent. The cursor stays."""
        ...

    async def workers_for(self, request: Request, *, now: Instant) -> tuple[ClientId, ...]:
        """Return the agents that would do, full or not, in turn; move the cursor if there are any.

        Reserves nothing: for who walks the list and reserves by id.
        """
        ...

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
        """Assign a context to the task, which takes over the slot of the reservation.

        The count of slots stays as it was. A task that has the context already keeps its one
        assignment, and the reservation is given back. Without a reservation, a first assignment
        takes a slot and another changes nothing. Denied with GONE where the reservation is open no
        more; what denies it leaves it open.
        """
        ...
