"""Who is there."""

from dataclasses import replace

from farm.core.eligibility import is_present
from farm.core.model import Assignment, Client, ClientId, DrainOrder, Instant, LinkId, Token
from farm.core.pools import Exclusion, checked_capacity
from farm.core.reservation import Denial
from farm.stores.departures import kind_of
from farm.stores.memory.clients import MemoryClients


class MemoryConnections(MemoryClients):
    """The `ConnectionRegistry` port."""

    async def register(
        self, client: Client, *, epoch_name: str, highest_token: Token | None, now: Instant
    ) -> Client | Denial:
        """See `ConnectionRegistry.register`."""
        known = self._clients.get(client.client_id)
        if known is not None and self._is_held_by_another(known, client, now):
            return Denial.IN_USE
        if known is not None and self._epoch_names[client.client_id] == epoch_name:
            kept = replace(
                known,
                link=client.link,
                instance=client.instance,
                namespaces=client.namespaces,
                metadata=client.metadata,
                capacity=client.capacity,
                task_queue=client.task_queue,
                activity_types=client.activity_types,
                node=client.node,
                deployment=client.deployment,
                browser=client.browser,
                draining=client.draining,
                draining_because=client.draining_because,
                seen_at=now,
            )
        else:
            self._opening.pop(client.client_id, None)
            kept = replace(
                client, epoch=self._next_epoch(client.client_id), seen_at=now, excluded=None
            )
            self._epoch_names[client.client_id] = epoch_name
        kept = self._fenced(kept, known)
        if not self._is_same_link(client, known):
            self._unproven.pop(client.client_id, None)
            if client.excluded is Exclusion.OPENING_PROBATION and client.link is not None:
                self._unproven[client.client_id] = client.excluded
        if known is not None and (before := kind_of(known)) != kind_of(kept):
            self._departures.note(before, known.seen_at)
        if client.link is not None:
            self._last_links[client.client_id] = client.link
        self._reports[client.client_id] = 0
        self._raise_token(client.client_id, highest_token)
        self._learn(kept)
        return kept

    @staticmethod
    def _is_same_link(client: Client, known: Client | None) -> bool:
        return known is not None and known.link is not None and known.link == client.link

    def _fenced(self, client: Client, known: Client | None) -> Client:
        same_link = self._is_same_link(client, known)
        drain = known.drain if same_link and known is not None else None
        return replace(client, drain=drain, draining=client.draining or drain is not None)

    def _is_held_by_another(self, known: Client, client: Client, now: Instant) -> bool:
        if known.instance == client.instance:
            return False
        present = is_present(known, now=now, window_s=self._window_s)
        # One that is away may still be running what it holds, until it is removed as gone.
        return present or bool(known.assignments)

    def _next_epoch(self, client_id: ClientId) -> int:
        self._last_epochs[client_id] = self._last_epochs.get(client_id, 0) + 1
        return self._last_epochs[client_id]

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.heard`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link:
            return False
        was_present = is_present(client, now=now, window_s=self._window_s)
        self._clients[client_id] = replace(client, seen_at=now)
        if not was_present:
            self._ready.show(client)
            self.changed()
        return True

    async def set_draining(
        self, client_id: ClientId, draining: bool = True, *, because: str = ""
    ) -> None:
        """See `ConnectionRegistry.set_draining`."""
        if client := self._clients.get(client_id):
            fenced = client.drain is not None
            self._put(replace(client, draining=draining or fenced, draining_because=because))

    async def fence(self, client_id: ClientId, *, by: str, now: Instant) -> bool:
        """See `ConnectionRegistry.fence`."""
        client = self._clients.get(client_id)
        if client is None:
            return False
        order = client.drain or DrainOrder(by=by, since=now)
        self._put(replace(client, draining=True, drain=order))
        return True

    async def set_advertised_capacity(
        self, client_id: ClientId, link: LinkId, max_concurrency: int
    ) -> bool:
        """See `ConnectionRegistry.set_advertised_capacity`."""
        announced = checked_capacity(max_concurrency)
        client = self._clients.get(client_id)
        if client is None or client.link != link:
            return False
        capacity = replace(client.capacity, max_concurrency=announced)
        self._put(replace(client, capacity=capacity))
        return True

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.unlink`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link:
            return False
        self._unproven.pop(client_id, None)
        self._put(replace(client, link=None))
        return True

    async def remove(
        self, client_id: ClientId, *, epoch: int, seen_at: Instant | None = None
    ) -> tuple[Assignment, ...] | None:
        """See `ConnectionRegistry.remove`."""
        client = self._clients.get(client_id)
        if client is None or client.epoch != epoch or seen_at not in (None, client.seen_at):
            return None
        del self._clients[client_id]
        self._departures.note(kind_of(client), client.seen_at)
        del self._epoch_names[client_id]
        self._opening.pop(client_id, None)
        self._ready.forget(client_id)
        self._last_links.pop(client_id, None)
        self._unproven.pop(client_id, None)
        self.changed()
        return tuple(client.assignments.values())
