"""On which nodes a request is tried, in order.

Where a namespace is placed is looked up when work is handed out, and written into nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from farm.core.model import Client, Request

Tier = str | None
"""A node; None is any, and no node at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Its work runs on any node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """Its work runs on these nodes where they have room, and else on any."""

    labels: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """Its work runs on these nodes and never on any other; on none, if these are none."""

    labels: frozenset[str]


NodePlacement = Unplaced | Prefer | Pinned
"""Where the work of a namespace runs."""


def tiers(request: Request, placement: NodePlacement) -> tuple[Tier, ...]:
    """Return where to try, in order. What the request itself names goes before any placement."""
    if request.node is not None:
        return (request.node,)
    match placement:
        case Unplaced():
            return (None,)
        case Prefer(labels=labels):
            return (*sorted(labels), None)
        case Pinned(labels=labels):
            return tuple(sorted(labels))
        case _:
            assert_never(placement)


def at(request: Request, tier: Tier) -> Request:
    """Return the request as it is asked in one tier."""
    return request if tier == request.node else replace(request, node=tier)


def is_within(client: Client, walked: Sequence[Tier]) -> bool:
    """Tell whether a client is on a node of the tiers."""
    return None in walked or client.node in walked
