"""What agents have and who holds it: the context registry, and what it may offer besides."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from farm.core.model import (
    Assignment,
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
)
from farm.core.reservation import Denial


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
