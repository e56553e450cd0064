"""Slots of agents, taken first and handed to a context afterwards (P5)."""

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import structlog

from farm.clock import Clock
from farm.core import tiers
from farm.core.decide import each_candidate
from farm.core.model import Assignment, ClientId, ContextId, Request
from farm.core.reservation import Denial, Reservation, given_back
from farm.errors import CollaboratorMissingError, StoreUnavailableError
from farm.manager.handle import ContextHandle
from farm.manager.placements import Placements
from farm.manager.terms import Timing
from farm.stores.ports.contexts import AssignmentRegistry
from farm.stores.ports.reservations import Slots

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@runtime_checkable
class SlotRegistry(AssignmentRegistry, Slots, Protocol):
    """A context registry that reserves slots."""


class SlotReservation:
    """One slot of one agent, given back at the end of its block unless it was committed."""

    def __init__(
        self,
        request: Request,
        reservation: Reservation,
        *,
        registry: SlotRegistry,
        clock: Clock,
        timeout_s: float,
        handle: Callable[[Assignment], ContextHandle],
    ) -> None:
        self._request = request
        self._reservation = reservation
        self._registry = registry
        self._clock = clock
        self._timeout_s = timeout_s
        self._handle = handle
        self._open = True

    @property
    def client_id(self) -> ClientId:
        """Whose slot it is."""
        return self._reservation.site.client_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        except StoreUnavailableError as away:
            log.warning("give_back.skipped", reason=away.detail)  # its time ends it

    async def release(self) -> None:
        """Give the slot back. Safe to repeat, and nothing once it was committed or is over."""
        if self._open:
            await self._registry.cancel(self._reservation)
            self._open = False

    async def commit(self, context_id: str | None = None) -> ContextHandle | None:
        """Hand the slot to a context of the agent, by default one that is idle and fits.

        The agent has as many slots taken as before. A context the task holds already stays as it
        is, and the slot is given back. None where the context can't be had, and the slot stays
        reserved; or where the reservation is over.

        Raises:
            StoreUnavailableError: If the store can't be reached.
        """
        try:
            for one in await self._idle() if context_id is None else [ContextId(context_id)]:
                outcome = await self._commit(one)
                if isinstance(outcome, Assignment):
                    self._open = False
                    return self._handle(outcome)
        except CancelledError:
            with suppress(StoreUnavailableError):
                await self._undo()
            raise
        return None

    async def _commit(self, context_id: ContextId) -> Assignment | Denial:
        return await self._registry.commit(
            self._request,
            self.client_id,
            context_id,
            reservation=self._reservation,
            now=self._clock(),
            timeout_s=self._timeout_s,
        )

    async def _idle(self) -> list[ContextId]:
        snapshot = await self._registry.snapshot(now=self._clock())
        mine = tuple(
            given_back(client, self._reservation)
            for client in snapshot.clients
            if client.client_id == self.client_id
        )
        found = each_candidate(self._request, replace(snapshot, clients=mine))
        return [candidate.context_id for candidate in found]

    async def _undo(self) -> None:
        """End what it may have been handed to, of which nobody will hear."""
        await self.release()
        snapshot = await self._registry.snapshot(now=self._clock())
        for client in snapshot.clients:
            for held in client.assignments.values():
                if held.reservation_id == self._reservation.reservation_id:
                    await self._registry.release(held.client_id, held.context_id, held.token)


class WorkerSlots:
    """Reserves slots for tasks: of whose turn it is, or of one agent.

    Args:
        registry: Where they are reserved.
        placements: On which nodes a namespace's work runs.
        timing: How long what is committed holds.
        clock: The time.
        handle: Makes a handle of an assignment that holds for so many seconds.
    """

    def __init__(
        self,
        *,
        registry: AssignmentRegistry,
        placements: Placements,
        timing: Timing,
        clock: Clock,
        handle: Callable[[Assignment, float], ContextHandle],
    ) -> None:
        self._given = registry
        self._placements = placements
        self._timing = timing
        self._clock = clock
        self._handle = handle

    async def select_and_reserve(
        self, request: Request, *, timeout_ms: float | None = None
    ) -> SlotReservation | None:
        """Take a slot of the next agent in turn that would do and has one; None where none has.

        To be used as `async with`, or released. Where the namespace is placed its nodes are asked
        tier by tier.

        Raises:
            InvalidInputError: If the timeout can't be used.
            StoreUnavailableError: If the store can't be reached.
        """
        term_s = self._timing.term_s(timeout_ms)
        for asked in await self._asked(request):
            found = await self._registry.select_and_reserve(asked, now=self._clock())
            if found is not None:
                return self._reservation(asked, found, term_s)
        return None

    async def reserve_worker(
        self, request: Request, client_id: ClientId, *, timeout_ms: float | None = None
    ) -> SlotReservation | None:
        """Take a slot of this agent; None unless it would do and has one."""
        term_s = self._timing.term_s(timeout_ms)
        for asked in await self._asked(request):
            found = await self._registry.reserve_worker(asked, client_id, now=self._clock())
            if isinstance(found, Reservation):
                return self._reservation(asked, found, term_s)
        return None

    async def workers_for(self, request: Request) -> tuple[ClientId, ...]:
        """Return the agents that would do, full or not, in the order in which to try them.

        Those of an earlier tier come first.
        """
        found: dict[ClientId, None] = {}
        for asked in await self._asked(request):
            found |= dict.fromkeys(await self._registry.workers_for(asked, now=self._clock()))
        return tuple(found)

    async def _asked(self, request: Request) -> list[Request]:
        walked = await self._placements.tiers(request)
        return [tiers.at(request, tier) for tier in walked or ()]

    def _reservation(
        self, request: Request, reservation: Reservation, term_s: float
    ) -> SlotReservation:
        return SlotReservation(
            request,
            reservation,
            registry=self._registry,
            clock=self._clock,
            timeout_s=term_s,
            handle=lambda assignment: self._handle(assignment, term_s),
        )

    @property
    def _registry(self) -> SlotRegistry:
        if not isinstance(self._given, SlotRegistry):
            raise CollaboratorMissingError("a context_registry with select_and_reserve")
        return self._given
