"""Two registries behind one port, which must answer alike."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

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
    ReservationId,
    Snapshot,
    Token,
    Window,
    WindowId,
)
from farm.core.pools import Exclusion
from farm.core.reservation import Denial, Reservation
from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry


class Both:
    """A `Registry` that asks both, compares, and returns the first's answer.

    Two stores need not count alike, so each token and each reservation of the first is paired with
    the second's.
    """

    def __init__(self, first: MemoryRegistry, second: RedisRegistry) -> None:
        self.first = first
        self._second = second
        self._generations = (first.generation(), second.generation())
        self._pairs: dict[tuple[ClientId, Token], Token] = {}
        self._reserved: dict[ReservationId | None, ReservationId] = {}
        self._chosen = 0

    def through(self, second: RedisRegistry) -> "Both":
        """Return the same pair, whose second is asked by another coordinator."""
        other = copy(self)
        other._second = second
        return other

    def woke_alike(self) -> bool:
        """Tell whether both or neither have woken waiters since this was last asked."""
        now = (self.first.generation(), self._second.generation())
        before, self._generations = self._generations, now
        return (now[0] > before[0]) == (now[1] > before[1])

    def _same_assignment(self, one: Assignment, other: Assignment) -> None:
        paired = self._pairs.setdefault((one.client_id, one.token), other.token)
        reserved = self._reserved.get(one.reservation_id)
        assert replace(one, token=paired, reservation_id=reserved) == other

    def _same(self, one: Any, other: Any) -> None:
        if isinstance(one, Assignment) and isinstance(other, Assignment):
            self._same_assignment(one, other)
        elif isinstance(one, Client) and isinstance(other, Client):
            self._same_client(one, other)
        elif isinstance(one, Reservation) and isinstance(other, Reservation):
            assert replace(one, reservation_id=other.reservation_id) == other
            assert one.reservation_id not in self._reserved
            assert other.reservation_id not in self._reserved.values()
            self._reserved[one.reservation_id] = other.reservation_id
        elif isinstance(one, tuple) and isinstance(other, tuple):
            assert len(one) == len(other)
            for a, b in zip(_sorted(one), _sorted(other), strict=True):
                self._same(a, b)
        else:
            assert one == other

    def _same_client(self, one: Client, other: Client) -> None:
        assert replace(one, assignments={}) == replace(other, assignments={})
        assert one.assignments.keys() == other.assignments.keys()
        for context_id, assignment in one.assignments.items():
            self._same_assignment(assignment, other.assignments[context_id])

    def _other(self, client_id: ClientId, token: Token) -> Token:
        return self._pairs.get((client_id, token), token)

    async def register(
        self, client: Client, *, epoch_name: str, highest_token: Token | None, now: Instant
    ) -> Client | Denial:
        one = await self.first.register(
            client, epoch_name=epoch_name, highest_token=highest_token, now=now
        )
        seen = None if highest_token is None else self._other(client.client_id, highest_token)
        other = await self._second.register(
            client, epoch_name=epoch_name, highest_token=seen, now=now
        )
        self._same(one, other)
        return one

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        one = await self.first.heard(client_id, link, now=now)
        assert one == await self._second.heard(client_id, link, now=now)
        return one

    async def set_draining(
        self, client_id: ClientId, draining: bool = True, *, because: str = ""
    ) -> None:
        await self.first.set_draining(client_id, draining, because=because)
        await self._second.set_draining(client_id, draining, because=because)

    async def fence(self, client_id: ClientId, *, by: str, now: Instant) -> bool:
        one = await self.first.fence(client_id, by=by, now=now)
        assert one == await self._second.fence(client_id, by=by, now=now)
        return one

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        one = await self.first.unlink(client_id, link, now=now)
        assert one == await self._second.unlink(client_id, link, now=now)
        return one

    async def remove(
        self, client_id: ClientId, *, epoch: int, seen_at: Instant | None = None
    ) -> tuple[Assignment, ...] | None:
        one = await self.first.remove(client_id, epoch=epoch, seen_at=seen_at)
        self._same(one, await self._second.remove(client_id, epoch=epoch, seen_at=seen_at))
        return one

    async def snapshot(self, *, now: Instant) -> Snapshot:
        one, other = await self.first.snapshot(now=now), await self._second.snapshot(now=now)
        assert replace(one, clients=()) == replace(other, clients=())
        assert [c.client_id for c in one.clients] == [c.client_id for c in other.clients]
        self._same(one.clients, other.clients)
        return one

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
        said: dict[str, Any] = {"epoch": epoch, "number": number, "now": now}
        said |= {"windows": windows, "contexts": contexts}
        one = await self.first.report(client_id, link, **said)
        self._same(one, await self._second.report(client_id, link, **said))
        return one

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        one = await self.first.assign(request, client_id, context_id, now=now, timeout_s=timeout_s)
        other = await self._second.assign(
            request, client_id, context_id, now=now, timeout_s=timeout_s
        )
        self._same(one, other)
        return one

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        """One chooses, in turn, and the other has to accept that, or to have nothing either."""
        self._chosen += 1
        how: dict[str, Any] = {"now": now, "timeout_s": timeout_s}
        both = (self.first, self._second)
        chooser, other = both if self._chosen % 2 else both[::-1]
        found = await chooser.assign_first(request, **how)
        if found is None:
            assert await other.assign_first(request, **how) is None
            return None
        accepted = await other.assign(request, found.client_id, found.context_id, **how)
        one, two = (found, accepted) if chooser is self.first else (accepted, found)
        self._same(one, two)
        assert isinstance(one, Assignment)
        return one

    async def restore(self, assignment: Assignment) -> bool:
        token = self._pairs.setdefault((assignment.client_id, assignment.token), assignment.token)
        one = await self.first.restore(assignment)
        reserved = self._reserved.get(assignment.reservation_id)
        others = replace(assignment, token=token, reservation_id=reserved)
        assert one == await self._second.restore(others)
        return one

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        one = await self.first.renew(client_id, context_id, token, now=now, timeout_s=timeout_s)
        token = self._other(client_id, token)
        other = await self._second.renew(client_id, context_id, token, now=now, timeout_s=timeout_s)
        self._same(one, other)
        return one

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        one = await self.first.holds(client_id, context_id, token)
        token = self._other(client_id, token)
        assert one == await self._second.holds(client_id, context_id, token)
        return one

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        one = await self.first.release(client_id, context_id, token)
        token = self._other(client_id, token)
        assert one == await self._second.release(client_id, context_id, token)
        return one

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        one = await self.first.release_expired(now=now)
        self._same(one, await self._second.release_expired(now=now))
        return one

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        one = await self.first.release_client(namespace, client_id, link=link)
        self._same(one, await self._second.release_client(namespace, client_id, link=link))
        return one

    async def next_turn(self, namespace: Namespace) -> int:
        one = await self.first.next_turn(namespace)
        assert one == await self._second.next_turn(namespace)
        return one

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> Reservation | Denial:
        one = await self.first.reserve_window(client_id, identity=identity, now=now)
        self._same(one, await self._second.reserve_window(client_id, identity=identity, now=now))
        return one

    async def reserve_tab(
        self, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        one = await self.first.reserve_tab(client_id, window_id, now=now)
        self._same(one, await self._second.reserve_tab(client_id, window_id, now=now))
        return one

    async def reserve_window_for(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        one = await self.first.reserve_window_for(request, client_id, now=now)
        self._same(one, await self._second.reserve_window_for(request, client_id, now=now))
        return one

    async def reserve_tab_for(
        self, request: Request, client_id: ClientId, window_id: WindowId, *, now: Instant
    ) -> Reservation | Denial:
        one = await self.first.reserve_tab_for(request, client_id, window_id, now=now)
        other = await self._second.reserve_tab_for(request, client_id, window_id, now=now)
        self._same(one, other)
        return one

    async def reserve_flow(self, client_id: ClientId, *, now: Instant) -> Reservation | Denial:
        one = await self.first.reserve_flow(client_id, now=now)
        self._same(one, await self._second.reserve_flow(client_id, now=now))
        return one

    async def select_and_reserve(self, request: Request, *, now: Instant) -> Reservation | None:
        one = await self.first.select_and_reserve(request, now=now)
        self._same(one, await self._second.select_and_reserve(request, now=now))
        return one

    async def reserve_worker(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        one = await self.first.reserve_worker(request, client_id, now=now)
        self._same(one, await self._second.reserve_worker(request, client_id, now=now))
        return one

    async def workers_for(self, request: Request, *, now: Instant) -> tuple[ClientId, ...]:
        one = await self.first.workers_for(request, now=now)
        assert one == await self._second.workers_for(request, now=now)
        return one

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
        how: dict[str, Any] = {"now": now, "timeout_s": timeout_s}
        one = await self.first.commit(
            request, client_id, context_id, reservation=reservation, **how
        )
        others = None if reservation is None else self._others(reservation)
        other = await self._second.commit(request, client_id, context_id, reservation=others, **how)
        self._same(one, other)
        return one

    async def set_advertised_capacity(
        self, client_id: ClientId, link: LinkId, max_concurrency: int
    ) -> bool:
        one = await self.first.set_advertised_capacity(client_id, link, max_concurrency)
        assert one == await self._second.set_advertised_capacity(client_id, link, max_concurrency)
        return one

    def _others(self, reservation: Reservation) -> Reservation:
        its_id = reservation.reservation_id
        return replace(reservation, reservation_id=self._reserved.get(its_id, its_id))

    async def cancel(self, reservation: Reservation) -> None:
        await self.first.cancel(reservation)
        await self._second.cancel(self._others(reservation))

    async def settle(
        self,
        request: Request,
        reservation: Reservation,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        how: dict[str, Any] = {"now": now, "timeout_s": timeout_s}
        one = await self.first.settle(request, reservation, context_id, **how)
        other = await self._second.settle(request, self._others(reservation), context_id, **how)
        self._same(one, other)
        return one

    async def publish_exclusions(
        self,
        coordinator: str,
        excluded: Mapping[ClientId, Exclusion],
        *,
        now: Instant,
        lease_s: float,
    ) -> None:
        for registry in (self.first, self._second):
            await registry.publish_exclusions(coordinator, excluded, now=now, lease_s=lease_s)

    async def proven(self, client_id: ClientId, link: LinkId) -> bool:
        one = await self.first.proven(client_id, link)
        assert one == await self._second.proven(client_id, link)
        return one

    async def exclusions(self, *, now: Instant) -> Mapping[ClientId, Exclusion]:
        one = await self.first.exclusions(now=now)
        assert one == await self._second.exclusions(now=now)
        return one

    def generation(self) -> int:
        return self.first.generation()

    async def changed_since(self, generation: int) -> None:
        await self.first.changed_since(generation)


def _sorted(values: tuple[Any, ...]) -> list[Any]:
    # Ports promise no order of assignments; two stores may differ.
    return sorted(values, key=lambda value: (value.client_id, getattr(value, "context_id", "")))
