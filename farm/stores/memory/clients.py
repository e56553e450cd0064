"""The one dictionary of frozen clients that the registries are over.

No method awaits between reading and writing, so each is atomic on the event loop. What callers
are given is frozen and does not change under them.
"""

from collections.abc import Callable
from dataclasses import replace

from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ContextId,
    Instant,
    LinkId,
    Request,
    Token,
)
from farm.stores.memory.ready import Ready
from farm.stores.memory.wakes import MemoryWakes


class MemoryClients(MemoryWakes):
    """What the parts of `MemoryRegistry` share.

    Args:
        store_epoch: The number of this life of the store; tokens of a later life are greater.
        presence_window_s: An agent not heard of for longer is not present.
    """

    def __init__(self, *, store_epoch: int, presence_window_s: float) -> None:
        super().__init__()
        self._store_epoch = store_epoch
        self._window_s = presence_window_s
        self._clients: dict[ClientId, Client] = {}
        """In order of client_id, so that a snapshot need not sort them."""
        self._reports: dict[ClientId, int] = {}
        self._tokens: dict[ClientId, Token] = {}
        self._ready = Ready()
        self._last_links: dict[ClientId, LinkId] = {}
        """The current link of each client, or the last it had."""

    def _hold(
        self,
        client: Client,
        request: Request,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
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

    def _update(self, client_id: ClientId, epoch: int, change: Callable[[Client], Client]) -> None:
        client = self._clients.get(client_id)
        if client is not None and client.epoch == epoch:
            self._put(change(client))

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
        if not known:
            self._clients = dict(sorted(self._clients.items()))
        self._ready.learn(client)
        self.changed()
