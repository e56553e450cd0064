"""The rules a store applies, atomically, when it is asked to commit a decision.

`decide` works on a snapshot that may be stale by the time its answer is used, so every store
checks these again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from farm.core.eligibility import (
    Reason,
    is_present,
    reject_client,
    reject_company,
    reject_context,
)
from farm.core.model import (
    Assignment,
    Client,
    ClientType,
    ContextId,
    Instant,
    Request,
    ReservationId,
    WindowId,
)
from farm.core.sites import Need, Site, most_tabs, most_windows, tabs_in

K = TypeVar("K")


class Denial(StrEnum):
    """Why a store did not do what it was asked; the caller tries its next candidate."""

    GONE = "gone"
    STALE = "stale"
    IN_USE = "in_use"
    NOT_READY = "not_ready"
    TAKEN = "taken"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A slot, and the room for its context where that is being created.

    It is open until it is settled, cancelled or given back because its time or the lease of its
    coordinator is over, whichever comes first, and ends with its epoch; so the room is given back
    once.
    """

    reservation_id: ReservationId
    site: Site
    epoch: int
    identity: str | None = None
    """Whose first window is being created."""


def reserved(client: Client, reservation: Reservation) -> Client:
    """Return the client with the room and the slot taken."""
    return _counted(client, reservation, 1)


def given_back(client: Client, reservation: Reservation) -> Client:
    """Return the client with the room and the slot of an open reservation free again."""
    return _counted(client, reservation, -1)


def _counted(client: Client, reservation: Reservation, by: int) -> Client:
    match reservation.site.need:
        case Need.WINDOW:
            identity, identities = reservation.identity, client.opening_identities
            return replace(
                client,
                opening_windows=client.opening_windows + by,
                opening_identities=identities
                if identity is None
                else _add(identities, identity, by),
            )
        case Need.TAB:
            opening = _add(client.opening_tabs, reservation.site.window, by)
            return replace(client, opening_tabs=opening)
        case Need.FLOW:
            return replace(client, opening_flows=client.opening_flows + by)
        case Need.SLOT:
            return replace(client, reserved_slots=client.reserved_slots + by)


def _add(counts: Mapping[K, int], key: K, by: int) -> dict[K, int]:
    changed = {**counts, key: counts.get(key, 0) + by}
    return {k: n for k, n in changed.items() if n > 0}


def deny_assign(
    request: Request, client: Client | None, context_id: ContextId, *, now: Instant, window_s: float
) -> Denial | None:
    """Say why the context cannot be assigned, or None if it can (P4)."""
    if client is None or context_id not in client.contexts:
        return Denial.GONE
    if context_id in client.assignments:
        return Denial.TAKEN
    if reason := reject_client(request, client, now=now, window_s=window_s):
        return Denial.FULL if reason is Reason.AT_CAPACITY else Denial.NOT_READY
    match reject_context(request, client, client.contexts[context_id]):
        case None:
            return None
        case Reason.WINDOW_SHARED | Reason.WINDOW_DEDICATED:
            return Denial.TAKEN
        case _:
            return Denial.NOT_READY


def deny_worker(
    request: Request, client: Client | None, *, now: Instant, window_s: float
) -> Denial | None:
    """Say why no slot can be reserved for the request, or None if one can (P5)."""
    if client is None:
        return Denial.GONE
    match reject_client(request, client, now=now, window_s=window_s):
        case None:
            return None
        case Reason.AT_CAPACITY:
            return Denial.FULL
        case _:
            return Denial.NOT_READY


def is_of(assignment: Assignment, request: Request) -> bool:
    """Tell whether an assignment is of the task that asks."""
    held_by = (assignment.namespace, assignment.task_id)
    return held_by == (request.namespace, request.task_id)


def deny_window(
    client: Client | None, *, now: Instant, window_s: float, request: Request | None = None
) -> Denial | None:
    """Say why no further window can be reserved, or None if one can (P5).

    A request may ask for fewer than were negotiated.
    """
    if client is None:
        return Denial.GONE
    if denial := _deny_slot(client, now=now, window_s=window_s):
        return denial
    if client.worker_windows() + client.opening_windows >= most_windows(request, client):
        return Denial.FULL
    return None


def deny_tab(
    client: Client | None,
    window_id: WindowId,
    *,
    now: Instant,
    window_s: float,
    request: Request | None = None,
) -> Denial | None:
    """Say why no further tab can be reserved in the window, or None if one can (P5)."""
    if client is None:
        return Denial.GONE
    if denial := _deny_slot(client, now=now, window_s=window_s):
        return denial
    if window_id not in client.windows:
        return Denial.GONE
    if tabs_in(client, window_id) >= most_tabs(request, client):
        return Denial.FULL
    if request is not None and reject_company(request, client, window_id):
        return Denial.TAKEN
    return None


def deny_flow(client: Client | None, *, now: Instant, window_s: float) -> Denial | None:
    """Say why no further console flow can be reserved, or None if one can (P5)."""
    if client is None:
        return Denial.GONE
    if denial := _deny_slot(client, now=now, window_s=window_s):
        return denial
    if client.client_type is not ClientType.CONSOLE:
        return Denial.NOT_READY
    if len(client.contexts) + client.opening_flows >= client.capacity.max_flows:
        return Denial.FULL
    return None


def _deny_slot(client: Client, *, now: Instant, window_s: float) -> Denial | None:
    kept_out = client.draining or client.excluded is not None
    if kept_out or not is_present(client, now=now, window_s=window_s):
        return Denial.NOT_READY
    limit = client.capacity.max_concurrency
    if limit is None or client.used_slots() >= limit:
        return Denial.FULL
    return None
