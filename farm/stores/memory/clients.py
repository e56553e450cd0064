"""The one dictionary of frozen clients that the registries are over.

No method awaits between reading and writing, so each is atomic on the event loop. What callers
are given is frozen and does not change under them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    ReservationId,
    Token,
)
from farm.core.pools import Exclusion
from farm.core.reachability import union
from farm.core.reservation import Reservation, given_back, reserved
from farm.core.sites import Site
from farm.stores.departures import Departures
from farm.stores.memory.ready import Ready
from farm.stores.memory.wakes import MemoryWakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A reservation that is open."""

    reservation: Reservation
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The exclusions of one coordinator, and until when they count."""

    until: float
    excluded: Mapping[ClientId, Exclusion]


class MemoryClients(MemoryWakes):
    """What the parts of `MemoryRegistry` share.

    Args:
        store_epoch: The number of this life of the store; tokens of a later life are greater.
        presence_window_s: An agent not heard of for longer is not present.
        reservation_timeout_s: For how long a context being created is believed in; then
            `release_expired` gives its room back. By default for ever: who has reserved here
            does not die and leave that behind.
    """

    def __init__(
        self,
        *,
        store_epoch: int,
        presence_window_s: float,
        reservation_timeout_s: float = inf,
    ) -> None:
        super().__init__()
        self._store_epoch = store_epoch
        self._window_s = presence_window_s
        self._reservation_timeout_s = reservation_timeout_s
        self._clients: dict[ClientId, Client] = {}
        self._in_order = True
        """They are in order of client_id, and a snapshot need not sort them."""
        self._reports: dict[ClientId, int] = {}
        self._tokens: dict[ClientId, Token] = {}
        self._ready = Ready()
        self._last_links: dict[ClientId, LinkId] = {}
        """The current link of each client, or the last it had."""
        self._epoch_names: dict[ClientId, str] = {}
        self._last_epochs: dict[ClientId, int] = {}
        self._departures = Departures()
        self._turns: dict[Namespace, int] = {}
        self._opening: dict[ClientId, dict[ReservationId, Open]] = {}
        """The reservations that are open; each is counted in its client."""
        self._reserved = 0
        self._published: dict[str, Published] = {}
        """By coordinator."""
        self._unproven: dict[ClientId, Exclusion] = {}
        """Those in probation, on the link that they have."""

    def _exclusions(self, now: Instant) -> dict[ClientId, Exclusion]:
        counting = (one.excluded for one in self._published.values() if one.until > now)
        return union((self._unproven, *counting))

    def _find(self, client_id: ClientId, now: Instant) -> Client | None:
        """Return a client to decide over: with its exclusion, which none that is kept has."""
        client = self._clients.get(client_id)
        counting = (one.excluded for one in self._published.values() if one.until > now)
        found = [each for each in (self._unproven, *counting) if client_id in each]
        if client is None or not found:
            return client
        kinds = union({client_id: each[client_id]} for each in found)
        return replace(client, excluded=kinds[client_id])

    def _hold(
        self,
        client: Client,
        request: Request,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
        reservation_id: ReservationId | None = None,
    ) -> Assignment:
        """Assign a context. Taking wakes nobody: who waits, waits for what is given back."""
        assignment = Assignment(
            namespace=request.namespace,
            client_id=client.client_id,
            epoch=client.epoch,
            context_id=context_id,
            task_id=request.task_id,
            token=self._next_token(client.client_id),
            since=now,
            renewed_at=now,
            expires_at=Instant(now + timeout_s),
            dedicated=request.dedicated,
            reservation_id=reservation_id,
        )
        held = replace(client, assignments={**client.assignments, context_id: assignment})
        self._clients[client.client_id] = held
        self._ready.taken(held, context_id)
        return assignment

    def _raise_token(self, client_id: ClientId, seen: Token | None) -> None:
        last = self._tokens.get(client_id, Token(store_epoch=self._store_epoch, counter=0))
        if seen is not None and seen > last:
            # An agent that has seen a token of a later life than ours would refuse all of ours.
            last = seen
        self._tokens[client_id] = last

    def _next_token(self, client_id: ClientId) -> Token:
        last = self._tokens.get(client_id, Token(store_epoch=self._store_epoch, counter=0))
        self._tokens[client_id] = replace(last, counter=last.counter + 1)
        return self._tokens[client_id]

    def _reserve(
        self, client: Client, site: Site, now: Instant, identity: str | None = None
    ) -> Reservation:
        """Take room that has not been denied. Taking wakes nobody."""
        self._reserved += 1
        reservation = Reservation(
            reservation_id=ReservationId(f"{self._store_epoch}:{self._reserved}"),
            site=site,
            epoch=client.epoch,
            identity=identity,
        )
        one = Open(reservation=reservation, expires_at=now + self._reservation_timeout_s)
        self._opening.setdefault(site.client_id, {})[reservation.reservation_id] = one
        self._take_room(reserved(client, reservation))
        return reservation

    def _without(self, client: Client, reservation_id: ReservationId) -> Client | None:
        """Return the client with a reservation given back; None if that is not open."""
        one = self._opening.get(client.client_id, {}).get(reservation_id)
        return None if one is None else given_back(client, one.reservation)

    def _give_back(self, client_id: ClientId, reservation_id: ReservationId) -> None:
        """Give a reservation back, and wake who waits; nothing if it is not open."""
        client = self._clients.get(client_id)
        without = None if client is None else self._without(client, reservation_id)
        if without is not None:
            del self._opening[client_id][reservation_id]
            self._put(without)

    def _give_back_expired(self, now: Instant) -> None:
        for client_id, opening in self._opening.items():
            for over in [key for key, one in opening.items() if one.expires_at <= now]:
                self._give_back(client_id, over)

    def _put(self, client: Client) -> None:
        """Keep what has become of a client that is known, and wake who waits."""
        self._take_room(client)
        self.changed()

    def _take_room(self, client: Client) -> None:
        """The same, and wake nobody."""
        self._clients[client.client_id] = client
        self._ready.show(client)

    def _learn(self, client: Client) -> None:
        """Keep what a client has registered or reported, and wake who waits."""
        known = client.client_id in self._clients
        self._clients[client.client_id] = client
        self._in_order = self._in_order and known
        self._ready.learn(client)
        self.changed()
