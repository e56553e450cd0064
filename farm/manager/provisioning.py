"""Creating a window, a tab or a console flow where nothing idle would do.

Room is reserved in the store before anything is asked of an agent, and is used or given back on
every path (P5). What appears too late is idle in the next report, and is lent like any other.
"""

import asyncio
from collections.abc import Callable

import structlog

from farm.clock import Clock
from farm.core.commands import Declared, Effect
from farm.core.eligibility import Reason
from farm.core.model import Assignment, ContextId, Instant, Request
from farm.core.placement import Means
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need, Site
from farm.errors import ClientAbsentError, CollaboratorMissingError
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.evidence import Admission
from farm.manager.outcomes import Creation
from farm.protocol import messages as wire
from farm.stores.ports.registries import Wakes
from farm.stores.ports.reservations import BrowserWindowRegistry, PlacedReservations, Reservations

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_HARMLESS = Declared(effect=Effect.IDEMPOTENT)
"""What is opened twice is lent like any other."""


class Provisioner:
    """Reserves, creates and settles."""

    def __init__(
        self,
        *,
        windows: BrowserWindowRegistry | None,
        placed: PlacedReservations | None,
        app_node: AppNode | None,
        wakes: Wakes,
        clock: Clock,
        new_id: Callable[[], str],
        timeout_s: float,
    ) -> None:
        self._windows = windows
        self._placed = placed
        self._app_node = app_node
        self._wakes = wakes
        self._clock = clock
        self._new_id = new_id
        self._timeout_s = timeout_s

    def means(self, not_on: frozenset[str]) -> Means:
        """Say what there is to create with."""
        return Means(
            app_node=self._app_node is not None,
            windows=self._windows is not None,
            flows=self._placed is not None,
            not_on=not_on,
        )

    async def reserve(self, site: Site, request: Request, now: Instant) -> Reservation | Denial:
        """Reserve the room."""
        match site.need:
            case Need.SLOT:
                raise ValueError("a slot alone is room for nothing new")
            case Need.FLOW:
                return await self._flows.reserve_flow(site.client_id, now=now)
            case Need.WINDOW if self._placed is not None:
                return await self._placed.reserve_window_for(request, site.client_id, now=now)
            case Need.WINDOW:
                return await self._browser.reserve_window(
                    site.client_id, identity=request.identity, now=now
                )
            case Need.TAB if self._placed is not None:
                return await self._placed.reserve_tab_for(
                    request, site.client_id, site.window, now=now
                )
            case Need.TAB:
                return await self._browser.reserve_tab(site.client_id, site.window, now=now)

    async def abandon(self, creation: Creation) -> None:
        """Give the reserved room back, unless it was used."""
        await self._reservations.cancel(creation.reservation)

    async def complete(self, creation: Creation) -> Assignment | Reason:
        """Create what room was reserved for, and assign it; or say why that came to nothing.

        Whatever happens, cancellation included, the reservation is used or given back.
        """
        settled = False
        try:
            async with asyncio.timeout(self._timeout_s):
                context_id = await self._create(creation)
                outcome = await self._settle(creation, context_id)
            settled = isinstance(outcome, Assignment)
            return outcome
        except (ClientAbsentError, TimeoutError) as error:
            log.warning("creation.failed", client_id=creation.site.client_id, reason=str(error))
            return Reason.CREATION_FAILED
        finally:
            if not settled:
                await self.abandon(creation)

    async def _create(self, creation: Creation) -> ContextId:
        if self._app_node is None:
            raise CollaboratorMissingError("app_node")
        client_id = creation.site.client_id
        sent = await self._app_node.send(
            client_id,
            command(self._new_id(), _order(creation)),
            admission=Admission(namespace=creation.request.namespace, declared=_HARMLESS),
        )
        try:
            answer = await sent.answer
        finally:
            self._app_node.forget(sent)
        if isinstance(answer, wire.Ack) or answer.outcome != "succeeded":
            raise ClientAbsentError(f"{client_id} opened nothing: {_why(answer)}")
        context_id = answer.value.get("context_id")
        if not isinstance(context_id, str):
            raise ClientAbsentError(f"{client_id} does not say what it opened")
        return ContextId(context_id)

    async def _settle(self, creation: Creation, context_id: ContextId) -> Assignment | Reason:
        while True:
            generation = self._wakes.generation()
            outcome = await self._reservations.settle(
                creation.request,
                creation.reservation,
                context_id,
                now=self._clock(),
                timeout_s=creation.timeout_s,
            )
            if isinstance(outcome, Assignment):
                return outcome
            if outcome is not Denial.NOT_READY:
                return Reason.LOST_RACE
            await self._wakes.changed_since(generation)

    @property
    def _reservations(self) -> Reservations:
        """Where `reserve` has reserved."""
        return self._browser if self._placed is None else self._placed

    @property
    def _browser(self) -> BrowserWindowRegistry:
        if self._windows is None:
            raise CollaboratorMissingError("browser_window_registry")
        return self._windows

    @property
    def _flows(self) -> PlacedReservations:
        if self._placed is None:
            raise CollaboratorMissingError("a registry that reserves flows")
        return self._placed


def _order(creation: Creation) -> wire.OpenWindow | wire.OpenTab | wire.CreateFlow:
    match creation.site.need:
        case Need.SLOT:
            raise ValueError("a slot alone is room for nothing new")
        case Need.FLOW:
            return wire.CreateFlow(worker=True)
        case Need.WINDOW:
            return wire.OpenWindow(
                identity=creation.request.identity,
                profile=creation.request.profile,
                options=creation.options,
                resets=creation.request.resets,
            )
        case Need.TAB:
            return wire.OpenTab(window_id=creation.site.window)


def _why(answer: wire.Ack | wire.Result) -> str:
    if isinstance(answer, wire.Ack):
        return f"{answer.refused} {answer.detail}".strip()
    return answer.failure.detail if answer.failure is not None else answer.outcome
