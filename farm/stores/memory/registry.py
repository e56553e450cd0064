"""Connections, contexts and windows over one dictionary of frozen clients.

No method awaits between reading and writing, so each is atomic on the event loop. What callers
are given is frozen and does not change under them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from farm.core import reservation
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    Instant,
    LinkId,
    Request,
    Snapshot,
    Token,
    Window,
    WindowId,
)
from farm.core.reservation import Denial
from farm.stores.memory.wakes import MemoryWakes

K = TypeVar("K")


class MemoryRegistry(MemoryWakes):
    """All four registry ports (`Registry`), for one process.

    Args:
        store_epoch: The number of this life of the store; tokens of a later life are greater.
        presence_window_s: An agent not heard of for longer is not present.
    """

    def __init__(self, *, store_epoch: int, presence_window_s: float) -> None:
        super().__init__()
        self._store_epoch = store_epoch
        self._window_s = presence_window_s
        self._clients: dict[ClientId, Client] = {}
        self._epoch_names: dict[ClientId, str] = {}
        self._last_epochs: dict[ClientId, int] = {}
        self._reports: dict[ClientId, int] = {}
        self._tokens: dict[ClientId, Token] = {}

    # ConnectionRegistry

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
                browser=client.browser,
                draining=client.draining,
                seen_at=now,
            )
        else:
            kept = replace(client, epoch=self._next_epoch(client.client_id), seen_at=now)
            self._epoch_names[client.client_id] = epoch_name
        self._reports[client.client_id] = 0
        self._raise_token(client.client_id, highest_token)
        self._put(kept)
        return kept

    def _is_held_by_another(self, known: Client, client: Client, now: Instant) -> bool:
        if known.instance == client.instance:
            return False
        present = known.link is not None and now - known.seen_at <= self._window_s
        # One that is away may still be running what it holds, until it is removed as gone.
        return present or bool(known.assignments)

    def _next_epoch(self, client_id: ClientId) -> int:
        self._last_epochs[client_id] = self._last_epochs.get(client_id, 0) + 1
        return self._last_epochs[client_id]

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

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.heard`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link:
            return False
        was_present = now - client.seen_at <= self._window_s
        self._clients[client_id] = replace(client, seen_at=now)
        if not was_present:
            self.changed()
        return True

    async def set_draining(self, client_id: ClientId) -> None:
        """See `ConnectionRegistry.set_draining`."""
        if client := self._clients.get(client_id):
            self._put(replace(client, draining=True))

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.unlink`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link:
            return False
        self._put(replace(client, link=None))
        return True

    async def remove(self, client_id: ClientId, *, epoch: int) -> tuple[Assignment, ...]:
        """See `ConnectionRegistry.remove`."""
        client = self._clients.get(client_id)
        if client is None or client.epoch != epoch:
            return ()
        del self._clients[client_id]
        del self._epoch_names[client_id]
        self.changed()
        return tuple(client.assignments.values())

    # ContextRegistry

    async def snapshot(self, *, now: Instant) -> Snapshot:
        """See `ContextRegistry.snapshot`."""
        return Snapshot(
            taken_at=now,
            clients=tuple(client for _, client in sorted(self._clients.items())),
            presence_window_s=self._window_s,
        )

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
        """See `ContextRegistry.report`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link or client.epoch != epoch:
            return Denial.STALE
        if number <= self._reports[client_id]:
            return Denial.STALE
        self._reports[client_id] = number
        there = {context.context_id: context for context in contexts}
        gone = tuple(a for key, a in client.assignments.items() if key not in there)
        self._put(
            replace(
                client,
                seen_at=now,
                windows={window.window_id: window for window in windows},
                contexts=there,
                assignments={k: a for k, a in client.assignments.items() if k in there},
            )
        )
        return gone

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `ContextRegistry.assign`."""
        client = self._clients.get(client_id)
        denial = reservation.deny_assign(
            request, client, context_id, now=now, window_s=self._window_s
        )
        if denial is not None or client is None:
            return denial or Denial.GONE
        return self._hold(client, request, context_id, now=now, timeout_s=timeout_s)

    def _hold(
        self,
        client: Client,
        request: Request,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment:
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
        )
        self._put(replace(client, assignments={**client.assignments, context_id: assignment}))
        return assignment

    async def restore(self, assignment: Assignment) -> bool:
        """See `ContextRegistry.restore`."""
        client = self._clients.get(assignment.client_id)
        if client is None or assignment.context_id in client.assignments:
            return False
        held = replace(assignment, epoch=client.epoch)
        context = Context(context_id=assignment.context_id)
        self._put(
            replace(
                client,
                contexts={assignment.context_id: context, **client.contexts},
                assignments={**client.assignments, assignment.context_id: held},
            )
        )
        self._raise_token(assignment.client_id, assignment.token)
        return True

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        """See `ContextRegistry.renew`."""
        client = self._clients.get(client_id)
        held = self._held(client, context_id, token)
        if client is None or held is None:
            return None
        renewed = replace(held, renewed_at=now, expires_at=Instant(now + timeout_s))
        # Nobody waits for a renewal, so it wakes nobody.
        self._clients[client_id] = replace(
            client, assignments={**client.assignments, context_id: renewed}
        )
        return renewed

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """See `ContextRegistry.holds`."""
        return self._held(self._clients.get(client_id), context_id, token) is not None

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """See `ContextRegistry.release`."""
        client = self._clients.get(client_id)
        held = self._held(client, context_id, token)
        if client is None or held is None:
            return False
        self._put(_released(client, [held]))
        return True

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        """See `ContextRegistry.release_expired`."""
        ended: list[Assignment] = []
        for client in list(self._clients.values()):
            over = [a for a in client.assignments.values() if a.expires_at <= now]
            if over:
                self._put(_released(client, over))
                ended += over
        return tuple(ended)

    @staticmethod
    def _held(client: Client | None, context_id: ContextId, token: Token) -> Assignment | None:
        held = client.assignments.get(context_id) if client is not None else None
        return held if held is not None and held.token == token else None

    # BrowserWindowRegistry

    async def reserve_window(
        self, client_id: ClientId, *, identity: str | None, now: Instant
    ) -> int | Denial:
        """See `BrowserWindowRegistry.reserve_window`."""
        client = self._clients.get(client_id)
        denial = reservation.deny_window(client, now=now, window_s=self._window_s)
        if denial is not None or client is None:
            return denial or Denial.GONE
        if identity is not None and self._is_taken(identity):
            return Denial.TAKEN
        self._put(_opening(client, 1, identity))
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
        client = self._clients.get(client_id)
        denial = reservation.deny_tab(client, window_id, now=now, window_s=self._window_s)
        if denial is not None or client is None:
            return denial or Denial.GONE
        self._put(replace(client, opening_tabs=_add(client.opening_tabs, window_id, 1)))
        return client.epoch

    async def cancel_window(self, client_id: ClientId, *, epoch: int, identity: str | None) -> None:
        """See `BrowserWindowRegistry.cancel_window`."""
        self._update(client_id, epoch, lambda client: _opening(client, -1, identity))

    async def cancel_tab(self, client_id: ClientId, window_id: WindowId, *, epoch: int) -> None:
        """See `BrowserWindowRegistry.cancel_tab`."""
        self._update(client_id, epoch, lambda client: _tab_opened(client, window_id))

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
            lambda client: _tab_opened(client, window_id),
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
        return self._hold(settled, request, context_id, now=now, timeout_s=timeout_s)

    def _update(self, client_id: ClientId, epoch: int, change: Callable[[Client], Client]) -> None:
        client = self._clients.get(client_id)
        if client is not None and client.epoch == epoch:
            self._put(change(client))

    def _put(self, client: Client) -> None:
        self._clients[client.client_id] = client
        self.changed()


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


def _tab_opened(client: Client, window_id: WindowId) -> Client:
    return replace(client, opening_tabs=_add(client.opening_tabs, window_id, -1))


def _released(client: Client, ended: Sequence[Assignment]) -> Client:
    """End assignments; their contexts are dirty until the agent reports them clean (P9)."""
    keys = {assignment.context_id for assignment in ended}
    return replace(
        client,
        assignments={k: a for k, a in client.assignments.items() if k not in keys},
        contexts={
            k: replace(c, clean=False) if k in keys else c for k, c in client.contexts.items()
        },
    )
