"""What goes wrong, when and for how long: all of it follows from a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Blow(StrEnum):
    """What is done to something."""

    KILL = "kill"
    """It is killed with -9, and started again afterwards."""
    PAUSE = "pause"
    """It is stopped, and goes on afterwards as if nothing had been."""
    CUT = "cut"
    """Its connections end, and it gets no new ones meanwhile."""
    STALL = "stall"
    """Nothing gets through to it or from it, and nobody is told."""
    LOSE = "lose"
    """Its connections carry nothing any more, and nobody is told; new ones do."""
    VANISH = "vanish"
    """Its packets vanish in the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One thing that goes wrong."""

    after: int
    """It happens when so many jobs have been submitted."""
    blow: Blow
    target: str
    for_s: float

    def __str__(self) -> str:
        return f"after {self.after:4} jobs: {self.blow} {self.target} for {self.for_s:.1f} s"


def schedule(
    seed: int,
    targets: Mapping[str, Sequence[Blow]],
    *,
    jobs: int,
    every: float,
    longest_s: float,
) -> list[Strike]:
    """Return what goes wrong, in order.

    Every kind of target (`a-1` and `a-2` are of one) gets every blow that can be done to it before
    any gets one again.

    Args:
        seed: What it follows from.
        targets: What can be struck, and how.
        jobs: How many are submitted.
        every: The jobs from one strike to the next, on average.
        longest_s: How long one lasts at most.
    """
    chance = Random(seed)
    cards = sorted({(kind_of(name), blow) for name, blows in targets.items() for blow in blows})
    left: list[tuple[str, Blow]] = []
    strikes: list[Strike] = []
    after = 0.0
    while (after := after + chance.uniform(0, 2 * every)) < jobs:
        left = left or chance.sample(cards, len(cards))
        kind, blow = left.pop()
        target = chance.choice(sorted(name for name in targets if kind_of(name) == kind))
        for_s = min(longest_s, chance.choice([0.05, 0.3, 1.0, 4.0]) * chance.uniform(0.5, 2.0))
        strikes.append(Strike(after=int(after), blow=blow, target=target, for_s=for_s))
    return strikes


def kind_of(target: str) -> str:
    """Return what it is one of."""
    return target.partition("-")[0]
