"""Windows, tabs and flows being created."""

from farm.core.model import Assignment, ClientId, ContextId, Instant, Request, WindowId
from farm.core.reservation import Denial
from farm.stores.redis import records
from farm.stores.redis.shard import RedisShard


class RedisWindows(RedisShard):
    """The ports `BrowserWindowRegistry` and `PlacedReservations`."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        return await self._reserve("window", client_id, now, "", *_given(identity))

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> int | Denial:
        """See `PlacedReservations.reserve_window_for`."""
        limit = request.placement.max_windows if request.placement else None
        identity = _given(request.identity)
        return await self._reserve("window", client_id, now, _or_empty(limit), *identity)

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_tab`."""
        return await self._reserve("tab", client_id, now, window_id)

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """See `PlacedReservations.reserve_tab_for`."""
        limit = request.placement.max_tabs_per_window if request.placement else None
        asked = (_or_empty(limit), records.request_text(request))
        return await self._reserve("tab", client_id, now, window_id, *asked)

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> int | Denial:
        """See `PlacedReservations.reserve_flow`."""
        return await self._reserve("flow", client_id, now)

    async def _reserve(
        self, what: str, client_id: ClientId, now: Instant, *asked: str | int
    ) -> int | Denial:
        outcome, *epoch = await self.run(
            f"reserve_{what}",
            client_id,
            repr(now),
            repr(self._window_s),
            repr(now + self._reservation_timeout_s),
            *asked,
        )
        return int(epoch[0]) if outcome == "ok" else Denial(outcome)

    async def cancel_window(self, client_id: ClientId, *, epoch: int, identity: str | None) -> None:
        """See `BrowserWindowRegistry.cancel_window`."""
        await self.run("cancel", client_id, epoch, records.WINDOWS, *_given(identity))

    async def cancel_tab(self, client_id: ClientId, window_id: WindowId, *, epoch: int) -> None:
        """See `BrowserWindowRegistry.cancel_tab`."""
        await self.run("cancel", client_id, epoch, records.tab_field(window_id))

    async def cancel_flow(self, client_id: ClientId, *, epoch: int) -> None:
        """See `PlacedReservations.cancel_flow`."""
        await self.run("cancel", client_id, epoch, records.FLOWS)

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
        reserved = (str(epoch), records.WINDOWS, *_given(identity))
        return await self._settle(request, client_id, context_id, reserved, now, timeout_s)

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
        reserved = (str(epoch), records.tab_field(window_id))
        return await self._settle(request, client_id, context_id, reserved, now, timeout_s)

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
        reserved = (str(epoch), records.FLOWS)
        return await self._settle(request, client_id, context_id, reserved, now, timeout_s)

    async def _settle(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        reserved: tuple[str, ...],
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        reply = await self.run(
            "settle",
            client_id,
            context_id,
            records.request_text(request),
            repr(now),
            repr(self._window_s),
            repr(now + timeout_s),
            *reserved,
        )
        return records.assigned(reply, request, client_id, context_id, now=now, timeout_s=timeout_s)


def _given(identity: str | None) -> tuple[str, ...]:
    return () if identity is None else (identity,)


def _or_empty(limit: int | None) -> int | str:
    return "" if limit is None else limit
