"""What agents have, and which task holds which of it."""

from collections.abc import Sequence
from dataclasses import replace

from farm.core import reservation
from farm.core.eligibility import is_present, reject_client
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    Contexts,
    Instant,
    LinkId,
    Namespace,
    Owner,
    Request,
    Snapshot,
    Token,
    Window,
)
from farm.core.reachability import marked
from farm.core.reservation import Denial
from farm.stores.memory.clients import MemoryClients


class MemoryContexts(MemoryClients):
    """The ports `ContextRegistry`, `FirstFit`, `ClientRelease` and `TurnKeeper`."""

    async def snapshot(self, *, now: Instant) -> Snapshot:
        """See `ContextRegistry.snapshot`."""
        return Snapshot(
            taken_at=now,
            clients=marked(tuple(self._clients.values()), self._exclusions(now)),
            presence_window_s=self._window_s,
            departed=self._departures.all(),
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
        self._learn(
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
        client = self._find(client_id, now)
        denial = reservation.deny_assign(
            request, client, context_id, now=now, window_s=self._window_s
        )
        if denial is not None or client is None:
            return denial or Denial.GONE
        return self._hold(client, request, context_id, now=now, timeout_s=timeout_s)

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        """See `FirstFit.assign_first`."""
        for client_id in self._ready.clients(request):
            client = self._find(client_id, now)
            if client is None or not is_present(client, now=now, window_s=self._window_s):
                self._ready.hide(client_id)  # a heartbeat brings it back
            elif reject_client(request, client, now=now, window_s=self._window_s) is None:
                for context_id in self._ready.contexts(request, client_id):
                    taken = await self.assign(
                        request, client_id, context_id, now=now, timeout_s=timeout_s
                    )
                    if isinstance(taken, Assignment):
                        return taken
        return None

    async def restore(self, assignment: Assignment) -> bool:
        """See `ContextRegistry.restore`."""
        client = self._clients.get(assignment.client_id)
        if client is None or assignment.context_id in client.assignments:
            return False
        held = replace(assignment, epoch=client.epoch)
        context = Context(context_id=assignment.context_id)
        self._learn(
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
        self._give_back_expired(now)
        ended: list[Assignment] = []
        for client in list(self._clients.values()):
            over = [a for a in client.assignments.values() if a.expires_at <= now]
            if over:
                self._put(_released(client, over))
                ended += over
        return tuple(ended)

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        """See `ClientRelease.release_client`."""
        client = self._clients.get(client_id)
        if client is None or (link is not None and self._last_links.get(client_id) != link):
            return ()
        ended = [
            held
            for key, held in client.assignments.items()
            if held.namespace == namespace and client.contexts[key].owner is Owner.WORKER
        ]
        if ended:
            self._put(_released(client, ended))
        return tuple(ended)

    async def next_turn(self, namespace: Namespace) -> int:
        """See `TurnKeeper.next_turn`."""
        turn = self._turns.get(namespace, 0)
        self._turns[namespace] = turn + 1
        return turn

    @staticmethod
    def _held(client: Client | None, context_id: ContextId, token: Token) -> Assignment | None:
        held = client.assignments.get(context_id) if client is not None else None
        return held if held is not None and held.token == token else None


def _released(client: Client, ended: Sequence[Assignment]) -> Client:
    """End assignments; their contexts are dirty until the agent reports them clean (P9)."""
    keys = {assignment.context_id for assignment in ended}
    dirty = {key: replace(client.contexts[key], clean=False) for key in keys}
    return replace(
        client,
        assignments={k: a for k, a in client.assignments.items() if k not in keys},
        contexts=Contexts.of(client.contexts).but(dirty),
    )
