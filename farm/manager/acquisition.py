"""One acquisition: what the store has at hand; else a snapshot, a choice, and the store's word."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farm.clock import Clock
from farm.core import decide, tiers
from farm.core.census import Declaration, Declared
from farm.core.decide import ContextKey, Verdict
from farm.core.eligibility import Reason
from farm.core.model import Assignment, Client, ClientId, Instant, Namespace, Request, Snapshot
from farm.core.placement import MUST_CREATE, Means
from farm.core.reservation import Denial
from farm.core.tiers import Tier
from farm.manager.choosing import Chooser
from farm.manager.outcomes import Creation
from farm.manager.placements import Placements
from farm.manager.provisioning import Provisioner
from farm.manager.strategies import Strategy
from farm.protocol.plan import BrowserOptions
from farm.stores.ports.deployments import QueueCatalogue
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """What was tried in one tier, and why each was not had."""

    clients: Mapping[ClientId, Reason]
    contexts: Mapping[ContextKey, Reason]


class Acquisition:
    """Takes an idle context, or reserves the room for one that is to be created."""

    def __init__(
        self,
        *,
        registry: AssignmentRegistry,
        presence: PresenceReader | None,
        provisioner: Provisioner,
        placements: Placements,
        owner: str | Owner,
        name: str,
        clock: Clock,
        queues: QueueCatalogue,
    ) -> None:
        self._registry = registry
        self._presence = presence
        self._provisioner = provisioner
        self._placements = placements
        self._owner = owner
        self._name = name
        self._clock = clock
        self._queues = queues
        self._first = registry.assign_first if isinstance(registry, FirstFit) else None
        turns = registry.next_turn if isinstance(registry, TurnKeeper) else None
        self._chooser = Chooser(registry, turns)

    async def take(self, wish: Wish) -> Assignment | Creation | Verdict:
        """Take or reserve, or say why nothing would do, all from one reading.

        Where others were quicker with all that would have done, it reads afresh, a few times. What
        the store has at hand is taken without a reading, which would be of all there is.
        """
        request = wish.request
        queue = await self._look_up(request)
        walked = await self._placements.tiers(request)
        if walked is None or queue.declaration is Declaration.UNDECLARED:
            snapshot = await self._read(request.namespace, self._clock())
            return self._explain(request, snapshot, walked, queue)
        reads = 1
        outcome = await self._walk(wish, walked, queue, first=True)
        while isinstance(outcome, Verdict) and _was_lost(outcome) and reads < _FRESH_READS:
            reads += 1
            outcome = await self._walk(wish, walked, queue, first=False)
        return outcome

    async def _walk(
        self, wish: Wish, walked: Sequence[Tier], queue: Declared, *, first: bool
    ) -> Assignment | Creation | Verdict:
        """Try tier by tier. An earlier one is given up only where nothing can be had or made."""
        now, snapshot = self._clock(), None
        passed: list[_Passed] = []
        for tier in walked:
            asked = replace(wish, request=tiers.at(wish.request, tier))
            if first and (at_hand := await self._first_fit(asked)) is not None:
                return at_hand
            snapshot = snapshot or await self._read(wish.request.namespace, now)
            found = await self._look(asked, snapshot, now)
            if not isinstance(found, _Passed):
                return found
            passed.append(found)
        snapshot = snapshot or await self._read(wish.request.namespace, now)
        verdict = self._explain(wish.request, snapshot, walked, queue)
        for one in passed:
            verdict = replace(
                verdict,
                clients={**verdict.clients, **one.clients},
                contexts={**verdict.contexts, **one.contexts},
            )
        return verdict

    async def _look(
        self, wish: Wish, snapshot: Snapshot, now: Instant
    ) -> Assignment | Creation | _Passed:
        request = wish.request
        taken = await self._chooser.take(
            request, snapshot, wish.strategy, now=now, timeout_s=wish.timeout_s
        )
        if isinstance(taken, Assignment):
            return taken
        means = self._means(request.namespace, snapshot)
        created = await self._reserve(wish, snapshot, means, now)
        if isinstance(created, Creation):
            return created
        lost = {client_id: r for (client_id, _), r in taken.contexts.items() if _is_loss(r)}
        return _Passed(clients={**lost, **created}, contexts=taken.contexts)

    def _refuse(self, request: Request, snapshot: Snapshot, queue: Declared) -> Verdict:
        """Say of those who might do that it is not known whether they may."""
        verdict = decide.explain(request, snapshot)
        clients = {
            key: reason if reason in _WHATEVER_THE_PLACEMENT else Reason.PLACEMENT_UNKNOWN
            for key, reason in verdict.clients.items()
        }
        return Verdict(clients=clients, contexts={}, queue=queue)

    def _means(self, namespace: Namespace, snapshot: Snapshot) -> Means:
        return self._provisioner.means(self._not_ours(namespace, snapshot))

    async def explain(self, request: Request) -> tuple[Snapshot, Verdict]:
        """Say why nothing would do now, with the reading that says it; takes nothing."""
        queue = await self._look_up(request)
        walked = await self._placements.tiers(request)
        snapshot = await self._read(request.namespace, self._clock())
        return snapshot, self._explain(request, snapshot, walked, queue)

    def _explain(
        self, request: Request, snapshot: Snapshot, walked: Sequence[Tier] | None, queue: Declared
    ) -> Verdict:
        if walked is None and queue.declaration is not Declaration.UNDECLARED:
            return self._refuse(request, snapshot, queue)
        means = self._means(request.namespace, snapshot)
        return replace(decide.explain(request, snapshot, means, walked), queue=queue)

    async def _look_up(self, request: Request) -> Declared:
        return await self._queues.look_up(request.namespace, request.task_queue)

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


_WHATEVER_THE_PLACEMENT = (
    Reason.OTHER_NAMESPACE,
    Reason.OTHER_QUEUE,
    Reason.ACTIVITY_NOT_SERVED,
)


def _was_lost(verdict: Verdict) -> bool:
    return any(_is_loss(reason) for reason in verdict.clients.values())


def _is_loss(reason: Reason) -> bool:
    return reason is Reason.LOST_RACE


def _as_present(client: Client, present: Mapping[ClientId, Mapping[str, Any]]) -> Client:
    metadata = present.get(client.client_id)
    if metadata is None:
        return replace(client, link=None)
    return replace(client, metadata=metadata)
