"""One acquisition: what the store has at hand; else a snapshot, a choice, and the store's word."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from farm.clock import Clock
from farm.core import decide
from farm.core.census import Declaration, declaration_of
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.model import Assignment, Client, ClientId, Instant, Namespace, Request, Snapshot
from farm.core.placement import MUST_CREATE, Means
from farm.core.reservation import Denial
from farm.manager.choosing import Chooser
from farm.manager.outcomes import Creation
from farm.manager.provisioning import Provisioner
from farm.manager.strategies import Strategy
from farm.protocol.plan import BrowserOptions
from farm.stores.ports.registries import AssignmentRegistry, FirstFit, PresenceReader, TurnKeeper

ANY = "any"
Owner = Callable[[Namespace, ClientId], str]
"""Which manager creates on a client for a namespace, or `any`."""
_FRESH_READS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be acquired, and how."""

    request: Request
    options: BrowserOptions
    create_not_on: frozenset[ClientId]
    strategy: Strategy | None
    timeout_s: float


class Acquisition:
    """Takes an idle context, or reserves the room for one that is to be created."""

    def __init__(
        self,
        *,
        registry: AssignmentRegistry,
        presence: PresenceReader | None,
        provisioner: Provisioner,
        owner: str | Owner,
        name: str,
        clock: Clock,
        task_queues: Collection[str] = (),
    ) -> None:
        self._registry = registry
        self._presence = presence
        self._provisioner = provisioner
        self._owner = owner
        self._name = name
        self._clock = clock
        self._task_queues = task_queues
        self._first = registry.assign_first if isinstance(registry, FirstFit) else None
        turns = registry.next_turn if isinstance(registry, TurnKeeper) else None
        self._chooser = Chooser(registry, turns)

    async def take(self, wish: Wish) -> Assignment | Creation | Verdict:
        """Take or reserve, or say why nothing would do, all from one reading.

        Where others were quicker with all that would have done, it reads afresh, a few times. What
        the store has at hand is taken without a reading, which would be of all there is.
        """
        if self._declared(wish.request) is Declaration.UNDECLARED:
            _, verdict = await self.explain(wish.request)
            return verdict
        if (at_hand := await self._first_fit(wish)) is not None:
            return at_hand
        reads = 1
        outcome = await self._look(wish)
        while isinstance(outcome, Verdict) and _was_lost(outcome) and reads < _FRESH_READS:
            reads += 1
            outcome = await self._look(wish)
        return outcome

    async def _look(self, wish: Wish) -> Assignment | Creation | Verdict:
        request, now = wish.request, self._clock()
        snapshot = await self._read(request.namespace, now)
        taken = await self._chooser.take(
            request, snapshot, wish.strategy, now=now, timeout_s=wish.timeout_s
        )
        if isinstance(taken, Assignment):
            return taken
        means = self._provisioner.means(self._not_ours(request.namespace, snapshot))
        created = await self._reserve(wish, snapshot, means, now)
        if isinstance(created, Creation):
            return created
        verdict = self._explain(request, snapshot, means)
        lost = {client_id: r for (client_id, _), r in taken.contexts.items() if _is_loss(r)}
        return replace(
            verdict,
            clients={**verdict.clients, **lost, **created},
            contexts={**verdict.contexts, **taken.contexts},
        )

    async def explain(self, request: Request) -> tuple[Snapshot, Verdict]:
        """Say why nothing would do now, with the reading that says it; takes nothing."""
        snapshot = await self._read(request.namespace, self._clock())
        means = self._provisioner.means(self._not_ours(request.namespace, snapshot))
        return snapshot, self._explain(request, snapshot, means)

    def _explain(self, request: Request, snapshot: Snapshot, means: Means) -> Verdict:
        verdict = decide.explain(request, snapshot, means)
        return replace(verdict, declaration=self._declared(request))

    def _declared(self, request: Request) -> Declaration:
        return declaration_of(request.task_queue, self._task_queues)

    async def _first_fit(self, wish: Wish) -> Assignment | None:
        """Let the store choose, where nobody else has a say in that."""
        if self._first is None or wish.strategy is not None or self._presence is not None:
            return None
        if wish.request.mode in MUST_CREATE:
            return None
        return await self._first(wish.request, now=self._clock(), timeout_s=wish.timeout_s)

    async def _reserve(
        self, wish: Wish, snapshot: Snapshot, means: Means, now: Instant
    ) -> Creation | Mapping[ClientId, Reason]:
        refused: dict[ClientId, Reason] = {}
        for site in decide.sites(wish.request, snapshot, means):
            if site.client_id in wish.create_not_on:
                refused[site.client_id] = Reason.CREATION_FAILED
                continue
            reservation = await self._provisioner.reserve(site, wish.request, now)
            if not isinstance(reservation, Denial):
                return Creation(
                    request=wish.request,
                    reservation=reservation,
                    options=wish.options,
                    timeout_s=wish.timeout_s,
                )
            refused[site.client_id] = Reason.LOST_RACE
        return refused

    async def _read(self, namespace: Namespace, now: Instant) -> Snapshot:
        if self._presence is None:
            return await self._registry.snapshot(now=now)
        present = await self._presence.presence(namespace, now=now)
        snapshot = await self._registry.snapshot(now=now)
        clients = tuple(_as_present(client, present) for client in snapshot.clients)
        return replace(snapshot, clients=clients)

    def _not_ours(self, namespace: Namespace, snapshot: Snapshot) -> frozenset[str]:
        if self._owner == ANY:
            return frozenset()
        return frozenset(
            client.client_id
            for client in snapshot.clients
            if self._owner_of(namespace, client.client_id) not in (ANY, self._name)
        )

    def _owner_of(self, namespace: Namespace, client_id: ClientId) -> str:
        return self._owner if isinstance(self._owner, str) else self._owner(namespace, client_id)


def _was_lost(verdict: Verdict) -> bool:
    return any(_is_loss(reason) for reason in verdict.clients.values())


def _is_loss(reason: Reason) -> bool:
    return reason is Reason.LOST_RACE


def _as_present(client: Client, present: Mapping[ClientId, Mapping[str, Any]]) -> Client:
    metadata = present.get(client.client_id)
    if metadata is None:
        return replace(client, link=None)
    return replace(client, metadata=metadata)
