"""Windows, tabs and flows being created."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from farm.core import reservation
from farm.core.model import Assignment, Client, ClientId, ContextId, Instant, Request, WindowId
from farm.core.reservation import Denial
from farm.stores.memory.clients import MemoryClients

K = TypeVar("K")


class MemoryWindows(MemoryClients):
    """The ports `BrowserWindowRegistry` and `PlacedReservations`."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        return self._reserve_window(client_id, identity, None, now)

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> int | Denial:
        """See `PlacedReservations.reserve_window_for`."""
        return self._reserve_window(client_id, request.identity, request, now)

    def _reserve_window(
        self, client_id: ClientId, identity: str | None, request: Request | None, now: Instant
    ) -> int | Denial:
        client = self._clients.get(client_id)
        denial = reservation.deny_window(client, now=now, window_s=self._window_s, request=request)
        if denial is not None or client is None:
            return denial or Denial.GONE
        if identity is not None and self._is_taken(identity):
            return Denial.TAKEN
        self._take_room(_opening(client, 1, identity))
        return client.epoch

    def _is_taken(self, identity: str) -> bool:
        return any(
            identity in client.opening_identities
            or any(window.identity == identity for window in client.windows.values())
            for client in self._clients.values()
        )

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_tab`."""
        return self._reserve_tab(client_id, window_id, None, now)

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """See `PlacedReservations.reserve_tab_for`."""
        return self._reserve_tab(client_id, window_id, request, now)

    def _reserve_tab(
        self, client_id: ClientId, window_id: WindowId, request: Request | None, now: Instant
    ) -> int | Denial:
        client = self._clients.get(client_id)
        denial = reservation.deny_tab(
            client, window_id, now=now, window_s=self._window_s, request=request
        )
        if denial is not None or client is None:
            return denial or Denial.GONE
        self._take_room(_tabs_opening(client, window_id, 1))
        return client.epoch

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> int | Denial:
        """See `PlacedReservations.reserve_flow`."""
        client = self._clients.get(client_id)
        denial = reservation.deny_flow(client, now=now, window_s=self._window_s)
        if denial is not None or client is None:
            return denial or Denial.GONE
        self._take_room(_flows_opening(client, 1))
        return client.epoch

    async def cancel_window(self, client_id: ClientId, *, epoch: int, identity: str | None) -> None:
        """See `BrowserWindowRegistry.cancel_window`."""
        self._update(client_id, epoch, lambda client: _opening(client, -1, identity))

    async def cancel_tab(self, client_id: ClientId, window_id: WindowId, *, epoch: int) -> None:
        """See `BrowserWindowRegistry.cancel_tab`."""
        self._update(client_id, epoch, lambda client: _tabs_opening(client, window_id, -1))

    async def cancel_flow(self, client_id: ClientId, *, epoch: int) -> None:
        """See `PlacedReservations.cancel_flow`."""
        self._update(client_id, epoch, lambda client: _flows_opening(client, -1))

    async def settle_window(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        epoch: int,
        identity: str | None,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `BrowserWindowRegistry.settle_window`."""
        return self._settle(
            request,
            client_id,
            context_id,
            epoch,
            now,
            timeout_s,
            lambda client: _opening(client, -1, identity),
        )

    async def settle_tab(
        self,
        request: Request,
        client_id: ClientId,
        window_id: WindowId,
        context_id: ContextId,
        *,
        epoch: int,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `BrowserWindowRegistry.settle_tab`."""
        return self._settle(
            request,
            client_id,
            context_id,
            epoch,
            now,
            timeout_s,
            lambda client: _tabs_opening(client, window_id, -1),
        )

    async def settle_flow(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        epoch: int,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `PlacedReservations.settle_flow`."""
        return self._settle(
            request,
            client_id,
            context_id,
            epoch,
            now,
            timeout_s,
            lambda client: _flows_opening(client, -1),
        )

    def _settle(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        epoch: int,
        now: Instant,
        timeout_s: float,
        give_back: Callable[[Client], Client],
    ) -> Assignment | Denial:
        client = self._clients.get(client_id)
        if client is None or client.epoch != epoch:
            return Denial.GONE
        if context_id not in client.contexts:
            return Denial.NOT_READY
        settled = give_back(client)
        # The slot of the reservation becomes the slot of the assignment: never two, never none.
        denial = reservation.deny_assign(
            request, settled, context_id, now=now, window_s=self._window_s
        )
        if denial is not None:
            return denial
        assignment = self._hold(settled, request, context_id, now=now, timeout_s=timeout_s)
        # Since it was reported, what was being created has counted twice.
        self.changed()
        return assignment


def _add(counts: Mapping[K, int], key: K, by: int) -> dict[K, int]:
    changed = {**counts, key: counts.get(key, 0) + by}
    return {k: n for k, n in changed.items() if n > 0}


def _opening(client: Client, by: int, identity: str | None) -> Client:
    identities = client.opening_identities
    return replace(
        client,
        opening_windows=max(0, client.opening_windows + by),
        opening_identities=identities if identity is None else _add(identities, identity, by),
    )


def _tabs_opening(client: Client, window_id: WindowId, by: int) -> Client:
    return replace(client, opening_tabs=_add(client.opening_tabs, window_id, by))


def _flows_opening(client: Client, by: int) -> Client:
    return replace(client, opening_flows=max(0, client.opening_flows + by))
