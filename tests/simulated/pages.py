"""What the pages of simulated agents do: everything follows from a seed and the attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from farm.protocol.plan import Plan
from farm.protocol.steps import Effect, effect_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How pages behave: how long a step takes, and how often one fails."""

    step_s: tuple[float, float] = (0.0, 0.0)
    """The shortest and the longest."""
    fails: float = 0.0
    """So likely a step fails before it has done anything."""
    breaks: float = 0.0
    """So likely what a step does outside happens, and the page then says that it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What becomes of one step."""

    index: int
    verb: str
    takes_s: float
    effect: Effect
    fails: bool
    breaks: bool


def turns(plan: Plan, pace: Pace, seed: int) -> Sequence[Turn]:
    """Return what becomes of each step of an attempt; for jobs of one name it is the same."""
    chance = Random(f"{seed} {plan.name} {plan.attempt_number}")
    found = []
    for index, step in enumerate(plan.steps):
        effect = effect_of(step, plan.effects)
        found.append(
            Turn(
                index=index,
                verb=str(step.type),
                takes_s=chance.uniform(*pace.step_s),
                effect=effect,
                fails=chance.random() < pace.fails,
                breaks=chance.random() < pace.breaks and effect is not Effect.NONE,
            )
        )
    return found
