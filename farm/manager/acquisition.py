"""One acquisition: what the store has at hand; else a snapshot, a choice, and the store's word."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farm.clock import Clock
from farm.core import decide, tiers
from farm.core.census import Declaration, Declared
from farm.core.decide import ContextKey, Verdict
from farm.core.eligibility import Reason
from farm.core.looks import Looks
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
from farm.stores.ports.connections import PresenceReader
from farm.stores.ports.contexts import AssignmentRegistry, FirstFit
from farm.stores.ports.deployments import QueueCatalogue
from farm.stores.ports.registries import TurnKeeper

ANY = "any"
Owner = Callable[[Namespace, ClientId], str]
"""Which manager creates on a client for a namespace, or `any`."""
_FRESH_READS = 3
_AT_ONCE = 500
"""So many agents are looked at before others have their turn; a millisecond's work."""


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
            looks = await self._read(request, self._clock())
            return self._explain(request, looks, walked, queue)
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
        now, looks = self._clock(), None
        passed: list[_Passed] = []
        for tier in walked:
            asked = replace(wish, request=tiers.at(wish.request, tier))
            if first and (at_hand := await self._first_fit(asked)) is not None:
                return at_hand
            looks = looks or await self._read(wish.request, now)
            found = await self._look(asked, looks, now)
            if not isinstance(found, _Passed):
                return found
            passed.append(found)
        looks = looks or await self._read(wish.request, now)
        verdict = self._explain(wish.request, looks, walked, queue)
        for one in passed:
            verdict = replace(
                verdict,
                clients={**verdict.clients, **one.clients},
                contexts={**verdict.contexts, **one.contexts},
            )
        return verdict

    async def _look(
        self, wish: Wish, looks: Looks, now: Instant
    ) -> Assignment | Creation | _Passed:
        request = wish.request
        taken = await self._chooser.take(
            request, looks, wish.strategy, now=now, timeout_s=wish.timeout_s
        )
        if isinstance(taken, Assignment):
            return taken
        created = await self._reserve(wish, looks, now)
        if isinstance(created, Creation):
            return created
        lost = {
            client_id: r for (client_id, _), r in taken.contexts.items() if r is Reason.LOST_RACE
        }
        return _Passed(clients={**lost, **created}, contexts=taken.contexts)

    def _refuse(self, request: Request, looks: Looks, queue: Declared) -> Verdict:
        """Say of those who might do that it is not known whether they may."""
        verdict = decide.explain(request, looks)
        clients = {
            key: reason if reason in _WHATEVER_THE_PLACEMENT else Reason.PLACEMENT_UNKNOWN
            for key, reason in verdict.clients.items()
        }
        return Verdict(clients=clients, contexts={}, queue=queue)

    def _means(self, request: Request, looks: Looks) -> Means:
        return self._provisioner.means(self._not_ours(request.namespace, looks.snapshot))

    async def explain(self, request: Request) -> tuple[Snapshot, Verdict]:
        """Say why nothing would do now, with the reading that says it; takes nothing."""
        queue = await self._look_up(request)
        walked = await self._placements.tiers(request)
        looks = await self._read(request, self._clock())
        return looks.snapshot, self._explain(request, looks, walked, queue)

    def _explain(
        self, request: Request, looks: Looks, walked: Sequence[Tier] | None, queue: Declared
    ) -> Verdict:
        if walked is None and queue.declaration is not Declaration.UNDECLARED:
            return self._refuse(request, looks, queue)
        means = self._means(request, looks)
        return replace(decide.explain(request, looks, means, walked), queue=queue)

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
        self, wish: Wish, looks: Looks, now: Instant
    ) -> Creation | Mapping[ClientId, Reason]:
        refused: dict[ClientId, Reason] = {}
        for site in decide.sites(wish.request, looks, self._means(wish.request, looks)):
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

    async def _read(self, request: Request, now: Instant) -> Looks:
        """Read all there is. Nothing was at hand, so mostly nothing will do, and all is looked at.

        Others have their turn in between: it may be very much.
        """
        looks = Looks(request, await self._snapshot(request.namespace, now))
        for _ in range(len(looks.snapshot.clients) // _AT_ONCE if self._first else 0):
            looks.further(_AT_ONCE)
            await asyncio.sleep(0)
        return looks

    async def _snapshot(self, namespace: Namespace, now: Instant) -> Snapshot:
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
    return Reason.LOST_RACE in verdict.clients.values()


def _as_present(client: Client, present: Mapping[ClientId, Mapping[str, Any]]) -> Client:
    metadata = present.get(client.client_id)
    if metadata is None:
        return replace(client, link=None)
    return replace(client, metadata=metadata)
