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


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One thing that goes wrong."""

    at_s: float
    blow: Blow
    target: str
    for_s: float

    @property
    def until_s(self) -> float:
        return self.at_s + self.for_s

    def __str__(self) -> str:
        return f"{self.at_s:6.1f} s: {self.blow} {self.target} for {self.for_s:.1f} s"


def schedule(
    seed: int,
    targets: Mapping[str, Sequence[Blow]],
    *,
    lasts_s: float,
    every_s: float,
    longest_s: float,
) -> list[Strike]:
    """Return what goes wrong, in order; nothing is struck again before it is whole.

    Args:
        seed: What it follows from.
        targets: What can be struck, and how.
        lasts_s: The last strike begins before this.
        every_s: The time from one strike to the next, on average.
        longest_s: How long one lasts at most.
    """
    chance = Random(seed)
    strikes: list[Strike] = []
    busy: dict[str, float] = {}
    at_s = 1.0
    while (at_s := at_s + chance.expovariate(1 / every_s)) < lasts_s:
        free = [target for target in targets if busy.get(target, 0.0) < at_s]
        if not free:
            continue
        target = chance.choice(sorted(free))
        strike = Strike(
            at_s=at_s,
            blow=chance.choice(targets[target]),
            target=target,
            for_s=min(longest_s, chance.choice([0.05, 0.3, 1.0, 4.0]) * chance.uniform(0.5, 2.0)),
        )
        busy[strike.target] = strike.until_s + 0.5
        strikes.append(strike)
    return strikes
