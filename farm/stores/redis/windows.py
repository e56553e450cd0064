"""Windows and tabs being created."""

from farm.core.model import Assignment, ClientId, ContextId, Instant, Request, WindowId
from farm.core.reservation import Denial
from farm.stores.redis import records
from farm.stores.redis.shard import RedisShard


class RedisWindows(RedisShard):
    """The `BrowserWindowRegistry` port."""

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        outcome, *epoch = await self.run(
            "reserve_window",
            client_id,
            repr(now),
            repr(self._window_s),
            repr(now + self._reservation_timeout_s),
            *_given(identity),
        )
        return int(epoch[0]) if outcome == "ok" else Denial(outcome)

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_tab`."""
        outcome, *epoch = await self.run(
            "reserve_tab",
            client_id,
            repr(now),
            repr(self._window_s),
            repr(now + self._reservation_timeout_s),
            window_id,
        )
        return int(epoch[0]) if outcome == "ok" else Denial(outcome)

    async def cancel_window(self, client_id: ClientId, *, epoch: int, identity: str | None) -> None:
        """See `BrowserWindowRegistry.cancel_window`."""
        await self.run("cancel", client_id, epoch, records.WINDOWS, *_given(identity))

    async def cancel_tab(self, client_id: ClientId, window_id: WindowId, *, epoch: int) -> None:
        """See `BrowserWindowRegistry.cancel_tab`."""
        await self.run("cancel", client_id, epoch, records.tab_field(window_id))

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
