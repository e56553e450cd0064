"""Stores that break a promise each, for a proof that can't fail proves nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from farm.clock import system_clock
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    Snapshot,
    Token,
    WindowId,
)
from farm.core.reservation import Denial
from farm.stores.ledger import SqlLedger
from farm.stores.memory import MemoryRegistry
from farm.stores.records import Effect
from tests.verify.farm import WINDOW_S


class Registry(MemoryRegistry):
    """The real one, of a store epoch of its own."""

    def __init__(self, *, presence_window_s: float = WINDOW_S) -> None:
        super().__init__(store_epoch=99, presence_window_s=presence_window_s)
        self.counter = count(10**6)

    def made_up(self, request: Request, client: Client, context_id: ContextId) -> Assignment:
        """Return an assignment that nobody has made."""
        now = system_clock()
        return Assignment(
            namespace=request.namespace,
            client_id=client.client_id,
            epoch=client.epoch,
            context_id=context_id,
            task_id=request.task_id,
            token=Token(store_epoch=99, counter=next(self.counter)),
            since=now,
            renewed_at=now,
            expires_at=Instant(now + 60),
        )

    async def lend(
        self, request: Request, keys: Sequence[str], *, linked: bool = False
    ) -> Assignment | None:
        """Lend whatever has been reported by who has the required values of some keys alone."""
        for client in (await self.snapshot(now=system_clock())).clients:
            if linked and client.link is None:
                continue
            if all(client.metadata.get(k) == request.requirements.get(k) for k in keys):
                for context_id in client.contexts:
                    return self.made_up(request, client, context_id)
        return None


class IgnoresPresence(Registry):
    """Lends by a report alone."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        found = await super().assign_first(request, now=now, timeout_s=timeout_s)
        return found or await self.lend(request, ("farm-verify", "point", "probe"))


class IgnoresSilence(Registry):
    """Takes an open link for presence."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        found = await super().assign_first(request, now=now, timeout_s=timeout_s)
        return found or await self.lend(request, ("farm-verify", "point", "probe"), linked=True)


class IgnoresRequirements(Registry):
    """Lends to whoever asks."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        return await self.lend(request, ("farm-verify", "point"))


class ConfusesTypes(Registry):
    """Compares as Python does, to which 1, 1.0 and True are one."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        return await self.lend(request, tuple(request.requirements))


class LendsTwice(IgnoresPresence):
    """Lends what is taken already, for that is in the report, too."""


class LendsNothing(Registry):
    """Has nothing for anybody."""

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        return None

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        return Denial.TAKEN


class HoldsForEver(Registry):
    """Takes every token for the one that holds."""

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        return True


class RenewsForEver(Registry):
    """Renews whatever holds, by whatever token."""

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        held = await self.held(client_id, context_id)
        return held and await super().renew(
            client_id, context_id, held.token, now=now, timeout_s=timeout_s
        )

    async def held(self, client_id: ClientId, context_id: ContextId) -> Assignment | None:
        clients = (await self.snapshot(now=system_clock())).clients
        client = next(c for c in clients if c.client_id == client_id)
        return client.assignments.get(context_id)


class ReleasesAnything(RenewsForEver):
    """Releases whatever holds, by whatever token."""

    renew = MemoryRegistry.renew

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        held = await self.held(client_id, context_id)
        return held is not None and await super().release(client_id, context_id, held.token)


class SweepsEverything(Registry):
    """Takes every assignment for over."""

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        return await super().release_expired(now=Instant(now + 1e6))


class ForgetsRenewals(Registry):
    """Says that it has renewed, and does not."""

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        snapshot = await self.snapshot(now=now)
        client = next(c for c in snapshot.clients if c.client_id == client_id)
        held = client.assignments.get(context_id)
        if held is None or held.token != token:
            return None
        return replace(held, renewed_at=now, expires_at=Instant(now + timeout_s))


class ReleasesEverybody(Registry):
    """Takes one client's disconnect for everybody's."""

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        for client in (await self.snapshot(now=system_clock())).clients:
            if client.client_id != client_id:
                await super().release_client(namespace, client.client_id, link=None)
        return await super().release_client(namespace, client_id, link=link)


class ReleasesNobody(Registry):
    """Does nothing at a disconnect."""

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        return ()


class WithoutClientRelease(Registry):
    """Offers no hook for disconnects."""

    release_client = None  # type: ignore[assignment]  # not there, for who looks


class CountsNoCreations(Registry):
    """Does not see what is being opened, and lets everybody open more."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    async def snapshot(self, *, now: Instant) -> Snapshot:
        seen = await super().snapshot(now=now)
        clients = (replace(c, opening_windows=0, opening_tabs={}) for c in seen.clients)
        return replace(seen, clients=tuple(clients))

    def again(self, reserved: Any) -> Any:
        """Return what was reserved, or where there is no room what was reserved before."""
        self.last = self.last if isinstance(reserved, Denial) else reserved
        return self.last

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Any:
        return self.again(await super().reserve_window_for(request, client_id, now=now))

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Any:
        return self.again(await super().reserve_tab_for(request, client_id, window_id, now=now))


class CountsNoTabs(CountsNoCreations):
    """Counts windows, and not their tabs."""

    async def snapshot(self, *, now: Instant) -> Snapshot:
        seen = await Registry.snapshot(self, now=now)
        return replace(seen, clients=tuple(replace(c, opening_tabs={}) for c in seen.clients))

    reserve_window_for = Registry.reserve_window_for


class ReservesTwice(Registry):
    """Reserves two windows for each that is to be opened."""

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Any:
        first = await super().reserve_window_for(request, client_id, now=now)
        if isinstance(first, Denial):
            return first
        return await super().reserve_window_for(request, client_id, now=now)


class ForgetsEffects(SqlLedger):
    """Has no evidence of effects when it is asked what to do next."""

    async def effects(
        self, job_id: str, *, attempt_id: str | None = None, namespace: Namespace | None = None
    ) -> Sequence[Effect]:
        return ()


BROKEN: Mapping[str, tuple[int, Callable[[], Registry], str]] = {
    "ignores presence": (1, IgnoresPresence, "was lent farm-verify.1.gone, its link closed"),
    "ignores silence": (1, IgnoresSilence, f"was lent farm-verify.1.mute, silent for {WINDOW_S:g}"),
    "ignores requirements": (2, IgnoresRequirements, "was to admit"),
    "confuses types": (2, ConfusesTypes, '{"level":1.0} was to admit nobody, and admitted one'),
    "lends twice": (3, LendsTwice, "callers at once hold"),
    "lends nothing": (3, LendsNothing, "of 12 callers at once 0 hold one of 3 contexts"),
    "holds for ever": (4, HoldsForEver, "a stale handle could send"),
    "renews for ever": (4, RenewsForEver, "a stale handle could renew"),
    "releases anything": (4, ReleasesAnything, "a stale handle released"),
    "sweeps everything": (5, SweepsEverything, "renewed in time has ended"),
    "forgets renewals": (5, ForgetsRenewals, "renewed in time has ended"),
    "releases everybody": (6, ReleasesEverybody, "released another's task"),
    "releases nobody": (6, ReleasesNobody, "the client that has gone still holds"),
    "counts no creations": (7, CountsNoCreations, "9 windows were opened where there was room"),
    "counts no tabs": (7, CountsNoTabs, "9 further tabs were opened where there was room"),
    "reserves twice": (8, ReservesTwice, "2 reservations for 1 windows"),
    "counts no creations of any": (8, CountsNoCreations, "9 windows were opened where"),
}
"""By name: the point that must fail, the registry, and what is said of it."""
