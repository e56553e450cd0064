"""Taking one of the idle contexts of a reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.core import decide
from farm.core.decide import Candidate, ContextKey
from farm.core.eligibility import Reason
from farm.core.looks import Looks
from farm.core.model import Assignment, Instant, Request
from farm.core.reservation import Denial
from farm.manager.strategies import Strategy, Turns, ask
from farm.stores.ports.contexts import AssignmentRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """The candidates there were, none of which was had, each with its reason."""

    contexts: Mapping[ContextKey, Reason]


class Chooser:
    """Asks a strategy for a candidate and the store for its assignment, until both agree."""

    def __init__(self, registry: AssignmentRegistry, turns: Turns | None) -> None:
        self._registry = registry
        self._turns = turns

    async def take(
        self,
        request: Request,
        looks: Looks,
        strategy: Strategy | None,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | PassedOver:
        """Take the candidate chosen, or after a lost assign the next, of those of the reading.

        Raises:
            StrategyError: If the strategy fails; nothing was taken.
        """
        lost: dict[ContextKey, Reason] = {}
        if strategy is None:
            return await self._in_order(request, looks, lost, now, timeout_s)
        left = decide.candidates(request, looks)
        # Affinity comes before the strategy's choice: that client's candidates first, then others.
        near = [c for c in left if c.client_id == request.affinity_client_id]
        others = [c for c in left if c.client_id != request.affinity_client_id]
        for group in (near, others):
            found = await self._chosen(request, group, strategy, lost, now, timeout_s)
            if found is not None:
                return found
        return PassedOver(contexts={**{c.key: Reason.NOT_CHOSEN for c in left}, **lost})

    async def _in_order(
        self,
        request: Request,
        looks: Looks,
        lost: dict[ContextKey, Reason],
        now: Instant,
        timeout_s: float,
    ) -> Assignment | PassedOver:
        full = None
        for candidate in decide.each_candidate(request, looks):
            outcome: Assignment | Denial = Denial.FULL
            if candidate.client_id != full:
                outcome = await self._assign(request, candidate, now, timeout_s)
            if isinstance(outcome, Assignment):
                return outcome
            lost[candidate.key] = Reason.LOST_RACE
            full = candidate.client_id if outcome is Denial.FULL else None
        return PassedOver(contexts=lost)

    async def _chosen(
        self,
        request: Request,
        group: Sequence[Candidate],
        strategy: Strategy,
        lost: dict[ContextKey, Reason],
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        left = list(group)
        while left:
            chosen = await ask(strategy, tuple(left), self._turns)
            if chosen is None:
                return None
            outcome = await self._assign(request, chosen, now, timeout_s)
            if isinstance(outcome, Assignment):
                return outcome
            lost[chosen.key] = Reason.LOST_RACE
            left.remove(chosen)
        return None

    async def _assign(
        self, request: Request, candidate: Candidate, now: Instant, timeout_s: float
    ) -> Assignment | Denial:
        return await self._registry.assign(
            request, candidate.client_id, candidate.context_id, now=now, timeout_s=timeout_s
        )
