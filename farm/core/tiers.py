"""Where the work of a namespace may be done: on any node, on some first, or on some only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unplaced:
    """On any node, and on agents of none."""


@dataclass(frozen=True, slots=True)
class Prefer:
    """On these nodes first, else anywhere."""

    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pinned:
    """On these nodes and nowhere else, whatever happens; on none where there are none."""

    labels: frozenset[str]


Placement = Unplaced | Prefer | Pinned
UNPLACED = Unplaced()
