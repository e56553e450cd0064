"""The four registries of the pool, and what a registry may offer besides."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    Snapshot,
    Token,
    Window,
    WindowId,
)
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.reachability import Reachability


class ConnectionRegistry(Protocol):
    """Who is there, by heartbeat, and with which exact metadata."""

    async def register(
        self,
        client: Client,
        *,
        epoch_name: str,
        highest_token: Token | None,
        now: Instant,
    ) -> Client | Denial:
        """Let an agent in on `client.link`; return it with its epoch number as stored.

        On a link of its own it is not fenced, and where `client.excluded` is OPENING_PROBATION it
        is kept out from the same step on, until it is `Reachability.proven`; on the one it had it
        is what it was. What is returned says nothing of exclusions.
        The same `epoch_name` of a known client keeps its number, contexts and assignments; a new
        one gets the next number and starts with none. Refused with IN_USE while another instance
        of the same client_id is present on a link of its own, or away and not yet removed while it
        holds assignments, which it may still be running.
        """
        ...

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that a frame of the agent's runtime came; False if `link` is not the current one."""
        ...

    async def set_draining(
        self, client_id: ClientId, draining: bool = True, *, because: str = ""
    ) -> None:
        """Let the agent take nothing new, or again what there is; note why.

        One that is fenced takes nothing all the same.
        """
        ...

    async def fence(self, client_id: ClientId, *, by: str, now: Instant) -> bool:
        """Give the agent nothing new on its present link, whatever it says of itself.

        Asked again, who asked first and when is kept. False if it is unknown.
        """
        ...

    async def set_advertised_capacity(
        self, client_id: ClientId, link: LinkId, max_concurrency: int
    ) -> bool:
        """Note how many slots an agent has now, and wake who waits; False if it has left the link.

        Fewer than are taken stop new work only.

        Raises:
            ValueError: If there are none.
        """
        ...

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that the link closed; the contexts stay, not selectable. False if not current."""
        ...

    async def remove(
        self, client_id: ClientId, *, epoch: int, seen_at: Instant | None = None
    ) -> tuple[Assignment, ...] | None:
        """Forget an epoch of a client that is known to be gone; return what it held.

        None, and nothing is done, where it is not there, or, with a `seen_at`, where it has been
        heard of since.
        """
        ...


@runtime_checkable
class PresenceReader(Protocol):
    """A connection registry that is not one store with the context registry.

    The manager reads it at each acquisition, and takes nothing for present that is not in it.
    """

    async def presence(
        self, namespace: Namespace, *, now: Instant
    ) -> Mapping[ClientId, Mapping[str, Any]]:
        """Return the clients of a namespace that are present now, each with its metadata."""
        ...


class AssignmentRegistry(Protocol):
    """What agents have, and which task holds which of it."""

    async def snapshot(self, *, now: Instant) -> Snapshot:
        """Return every client with its windows, contexts and assignments, read at one moment."""
        ...

    async def report(
        self,
        client_id: ClientId,
        link: LinkId,
        *,
        epoch: int,
        number: int,
        windows: Sequence[Window],
        contexts: Sequence[Context],
        now: Instant,
    ) -> tuple[Assignment, ...] | Denial:
        """Replace the picture of one epoch (P1); return the assignments whose context is gone.

        Denied with STALE for an older number, another epoch or another link, changing nothing.
        """
        ...

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """Re-check the context and take it with one slot, in one step (P4)."""
        ...

    async def restore(self, assignment: Assignment) -> bool:
        """Put back an assignment the agent still runs, after the registry lost its memory.

        False where the context is gone or held by another.
        """
        ...

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        """Extend an assignment; None if it is not the one that holds."""
        ...

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """Tell whether the assignment under this token is the one that holds (P8)."""
        ...

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """End an assignment; the context is dirty until its agent reports it clean (P9)."""
        ...


@runtime_checkable
class FirstFit(Protocol):
    """Finds what will do without reading all there is, for who leaves the choice to the store."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        """Take an idle context that will do, as `assign` does; None where none was at hand.

        The affinity client's come first, then those of the emptiest client, or of the fullest where
        the request says so. However much there is, it looks at a bounded part; so None says nothing
        of the rest.
        """
        ...


@runtime_checkable
class BulkTimeout(Protocol):
    """Ends what is over in one step. Optional: without it a manager ends one after the other."""

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        """End every assignment whose time is over, and return them."""
        ...


class ContextRegistry(AssignmentRegistry, BulkTimeout, Protocol):
    """What the farm's own stores do as a context registry."""


@runtime_checkable
class ClientRelease(Protocol):
    """Ends what one client holds, for the policy of who has seen its link close."""

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        """End, in one step, the assignments of the client's worker contexts in the namespace.

        The contexts stay, dirty. With a `link` nothing is done unless that is the client's current
        link, or the last it had.
        """
        ...


@runtime_checkable
class TurnKeeper(Protocol):
    """Counts turns for all coordinators over one store."""

    async def next_turn(self, namespace: Namespace) -> int:
        """Return 0, then 1, and so on; each number once in a namespace."""
        ...


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


@runtime_checkable
class Wakes(Protocol):
    """Tells waiters that something may have changed (P7)."""

    def generation(self) -> int:
        """Return the number of the last change; read it before reading the state."""
        ...

    async def changed_since(self, generation: int) -> None:
        """Return as soon as there has been a change after `generation`."""
        ...


class Registry(
    ConnectionRegistry, ContextRegistry, BrowserWindowRegistry, Reachability, Wakes, Protocol
):
    """All four over one atomic store.

    `FirstFit`, `ClientRelease`, `TurnKeeper`, `PlacedReservations` and `Slots` are offered besides;
    the farm's own stores offer them all.
    """
