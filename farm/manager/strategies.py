"""Strategies: which of the idle candidates that passed eligibility is to be had.

A strategy reserves nothing; of what it chooses the store has the last word (P4), and after a lost
assign it is asked again over what is left. None promises fairness over several managers, but for
`RoundRobinStrategy` over registries that count the turns for all of them.
"""

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from farm.core import selection
from farm.core.decide import Candidate
from farm.core.model import Namespace
from farm.errors import FarmError, StrategyError

Turns = Callable[[Namespace], Awaitable[int]]
"""The number of the next turn in a namespace, from 0."""
Choice = Candidate | None


class Strategy(Protocol):
    """Chooses among the idle candidates that passed eligibility."""

    def choose(self, candidates: Sequence[Candidate], /) -> Choice | Awaitable[Choice]:
        """Return one of `candidates`, which are not empty, or None for none of them."""
        ...


@runtime_checkable
class TakesTurns(Protocol):
    """A strategy that counts its turns where the manager's registry counts them, if it does."""

    async def choose_in_turn(
        self, candidates: Sequence[Candidate], turns: Turns | None, /
    ) -> Choice:
        """Do as `Strategy.choose`."""
        ...


class RoundRobinStrategy:
    """Goes through the candidates in order of client and context, one further at each choice.

    Each namespace has a counter of its own.

    Args:
        scope: `registry` counts in the manager's registry where that counts turns, so that all its
            coordinators take turns together, and else in this object; `process` always in this.
    """

    def __init__(self, *, scope: Literal["registry", "process"] = "registry") -> None:
        self._shared = scope == "registry"
        self._next: dict[Namespace, int] = {}

    def choose(self, candidates: Sequence[Candidate]) -> Choice:
        """See `Strategy.choose`; counts in this object."""
        namespace = candidates[0].request.namespace
        turn = self._next.get(namespace, 0)
        self._next[namespace] = turn + 1
        return selection.in_turn(candidates, turn)

    async def choose_in_turn(self, candidates: Sequence[Candidate], turns: Turns | None) -> Choice:
        """See `TakesTurns.choose_in_turn`."""
        if turns is None or not self._shared:
            return self.choose(candidates)
        return selection.in_turn(candidates, await turns(candidates[0].request.namespace))


class LeastBusyStrategy:
    """Prefers the client with the fewest assignments in the snapshot.

    That measures neither load nor a queue. Of equals the task's name decides, see
    `farm.core.selection.least_busy`.
    """

    def choose(self, candidates: Sequence[Candidate]) -> Choice:
        """See `Strategy.choose`."""
        return selection.least_busy(candidates)


class ScoringStrategy:
    """Takes the candidate with the highest score; of equals the first as they were given.

    Args:
        scorer: Gives a candidate's score, any number but NaN. What it raises reaches the caller of
            `acquire` as the cause of a `StrategyError`, and no worker is taken.
    """

    def __init__(self, scorer: Callable[[Candidate], float]) -> None:
        self._scorer = scorer

    def choose(self, candidates: Sequence[Candidate]) -> Choice:
        """See `Strategy.choose`."""
        return max(candidates, key=self._score)

    def _score(self, candidate: Candidate) -> float:
        score = self._scorer(candidate)
        if math.isnan(score):
            raise ValueError(f"the score of {candidate.context_id} is not a number")
        return score


class CompositeStrategy:
    """Takes the choice of the first strategy that makes one; None if none does."""

    def __init__(self, *strategies: Strategy) -> None:
        self._strategies = strategies

    async def choose(self, candidates: Sequence[Candidate]) -> Choice:
        """See `Strategy.choose`."""
        return await self.choose_in_turn(candidates, None)

    async def choose_in_turn(self, candidates: Sequence[Candidate], turns: Turns | None) -> Choice:
        """See `TakesTurns.choose_in_turn`."""
        for strategy in self._strategies:
            chosen = await ask(strategy, candidates, turns)
            if chosen is not None:
                return chosen
        return None


async def ask(strategy: Strategy, candidates: Sequence[Candidate], turns: Turns | None) -> Choice:
    """Ask a strategy, a caller's own included.

    Raises:
        StrategyError: If it raises, or returns what is none of the candidates.
        FarmError: If that is what it raises.
    """
    name = type(strategy).__name__
    try:
        chosen = await _choice(strategy, candidates, turns)
    except FarmError:
        raise
    except Exception as error:
        detail = f"{name} raised {type(error).__name__}: {error}"
        raise StrategyError(detail, strategy=name) from error
    if chosen is not None and chosen not in candidates:
        raise StrategyError(f"{name} chose what it was not given", strategy=name)
    return chosen


async def _choice(
    strategy: Strategy, candidates: Sequence[Candidate], turns: Turns | None
) -> Choice:
    if isinstance(strategy, TakesTurns):
        return await strategy.choose_in_turn(candidates, turns)
    chosen = strategy.choose(candidates)
    return await chosen if inspect.isawaitable(chosen) else chosen
