"""Slots taken on agents, before it is said for which context."""

from farm.core import reservation as rules
from farm.core.eligibility import is_present, reject_agent, reject_client
from farm.core.model import Assignment, Client, ClientId, ContextId, Instant, Request
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need, Site
from farm.stores.memory.clients import MemoryClients
from farm.stores.memory.pools import pool_of


class MemorySlots(MemoryClients):
    """The `Slots` port."""

    async def select_and_reserve(self, request: Request, *, now: Instant) -> Reservation | None:
        """See `Slots.select_and_reserve`."""
        pool = pool_of(request)
        few = self._ready.few_who_meet(request)
        for client_id in self._ready.pools.free(pool, few):
            client = self._find(client_id, now)
            if client is None or not is_present(client, now=now, window_s=self._window_s):
                self._ready.hide(client_id)  # a heartbeat brings it back
            elif reject_client(request, client, now=now, window_s=self._window_s) is None:
                self._ready.pools.had(pool, client_id)
                return self._take_slot(client, now)
        return None

    async def reserve_worker(
        self, request: Request, client_id: ClientId, *, now: Instant
    ) -> Reservation | Denial:
        """See `Slots.reserve_worker`."""
        client = self._find(client_id, now)
        denial = rules.deny_worker(request, client, now=now, window_s=self._window_s)
        if denial is not None or client is None:
            return denial or Denial.GONE
        return self._take_slot(client, now)

    def _take_slot(self, client: Client, now: Instant) -> Reservation:
        return self._reserve(client, Site(client_id=client.client_id, need=Need.SLOT), now)

    async def workers_for(self, request: Request, *, now: Instant) -> tuple[ClientId, ...]:
        """See `Slots.workers_for`."""
        pool = pool_of(request)
        found = tuple(
            client_id
            for client_id in self._ready.pools.members(pool)
            if self._would_do(request, client_id, now)
        )
        if found:
            self._ready.pools.had(pool, found[0])
        return found

    def _would_do(self, request: Request, client_id: ClientId, now: Instant) -> bool:
        client = self._find(client_id, now)
        if client is None:
            return False
        return reject_agent(request, client, now=now, window_s=self._window_s) is None

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
        """See `Slots.commit`."""
        client = self._find(client_id, now)
        if client is None:
            return Denial.GONE
        its_id = None if reservation is None else reservation.reservation_id
        without = client if its_id is None else self._without(client, its_id)
        held = client.assignments.get(context_id)
        if held is not None and rules.is_of(held, request):
            if its_id is not None:
                self._give_back(client_id, its_id)
            return held
        if without is None:
            return Denial.GONE
        denial = rules.deny_assign(request, without, context_id, now=now, window_s=self._window_s)
        if denial is not None:
            return denial
        if its_id is not None:
            del self._opening[client_id][its_id]
        return self._hold(
            without, request, context_id, now=now, timeout_s=timeout_s, reservation_id=its_id
        )
