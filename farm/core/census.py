"""Who was there for a request that got nothing, counted, and the verdict that makes (P6).

The census is taken of the snapshot that missed, so that it and the reasons are one reading.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from farm.core.eligibility import Reason
from farm.core.looks import Looks
from farm.core.model import Request, Snapshot
from farm.core.tiers import Tier, is_within


class PoolVerdict(StrEnum):
    """What is the matter with a pool, for one request; the values are part of the public API."""

    NO_QUEUE_DECLARATION = "no_queue_declaration"
    NO_LIVE_POLLERS = "no_live_pollers"
    POLLERS_INCOMPATIBLE = "pollers_incompatible"
    POLLERS_IN_PROBATION = "pollers_in_probation"
    POLLERS_UNREACHABLE = "pollers_unreachable"
    POLLERS_LINKED_ELSEWHERE = "pollers_linked_elsewhere"
    POLLERS_DRAINING = "pollers_draining"
    POLLERS_AT_CAPACITY = "pollers_at_capacity"
    POLLERS_CAPACITY_UNANNOUNCED = "pollers_capacity_unannounced"
    NO_WINDOW_FREE = "no_window_free"
    NO_TAB_FREE = "no_tab_free"
    NO_FLOW_FREE = "no_flow_free"
    NO_IDENTITY_FREE = "no_identity_free"
    PROVISIONING_REFUSED = "provisioning_refused"
    """Nothing may or can be created; the reason says by which limit."""
    PLACEMENT_UNKNOWN = "placement_unknown"
    """It can't be read on which nodes the work of the namespace may run."""
    SATURATED = "saturated"
    """An agent was chosen and has not taken it; known from delivery, never from a census."""
    SERVED_RACED = "served_raced"
    """There was room, and others were quicker."""

    @property
    def structural(self) -> bool:
        """Tell whether waiting can't help: what is asked for has to be changed."""
        return self is PoolVerdict.NO_QUEUE_DECLARATION


class Declaration(StrEnum):
    """What the catalogue of task queues says of one."""

    DECLARED = "declared"
    UNDECLARED = "undeclared"
    UNCHECKED = "unchecked"
    """Nothing is declared, or what is can't be read: nothing is refused for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is known of one task queue in one namespace."""

    declaration: Declaration = Declaration.UNCHECKED
    near: str | None = None
    """The declared one with the name that looks most like one that is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The agents of one reading. Each of the first four counts is part of the one before."""

    in_pool: int = 0
    """Present, of the namespace and the task queue."""
    serving_activity: int = 0
    """And of the activity type."""
    compatible: int = 0
    """And of the node, the client type and the requirements, whatever state they are in."""
    eligible_compatible: int = 0
    """And within reach, proven, and not draining; full ones are among them."""
    reachability_lost: int = 0
    in_probation: int = 0
    linked_elsewhere: int = 0
    draining: int = 0
    """Of the compatible, those that are not eligible, each under one of the four."""
    at_capacity: int = 0
    capacity_unannounced: int = 0
    """Of the eligible, those without a free slot, each under one of the two."""
    last_compatible_age_s: float | None = None
    """0 while a compatible one is there, else since when the last is not; None: none ever was."""


_OUTSIDE = frozenset({Reason.OTHER_NAMESPACE, Reason.OTHER_QUEUE})
_OTHER_WORK = frozenset({Reason.ACTIVITY_NOT_SERVED})
_UNFIT = frozenset({Reason.OTHER_NODE, Reason.OTHER_CLIENT_TYPE, Reason.REQUIREMENTS_NOT_MET})
_INCOMPATIBLE = _OUTSIDE | _OTHER_WORK | _UNFIT
_INELIGIBLE = {
    Reason.LINKED_ELSEWHERE: "linked_elsewhere",
    Reason.IN_PROBATION: "in_probation",
    Reason.UNREACHABLE: "reachability_lost",
    Reason.DRAINING: "draining",
}
"""In the order in which they count, where several hold of one agent."""
_FULL = {
    Reason.AT_CAPACITY: "at_capacity",
    Reason.CAPACITY_UNANNOUNCED: "capacity_unannounced",
}


def census(
    request: Request, read: Snapshot | Looks, walked: Sequence[Tier] | None = None
) -> Census:
    """Count the agents of a reading as they are for a request, each once.

    Compatible is who is on a node of exactly the tiers `walked`; by default of the request's own.
    """
    walked = (request.node,) if walked is None else walked
    looks = Looks.of(request, read)
    counts: Counter[str] = Counter()
    for found, number in Counter([found for _, found in looks.each(walked)]).items():
        counts.update(dict.fromkeys(_groups(frozenset(found)), number))
    age_s = 0.0 if counts["compatible"] else _age_s(looks, walked)
    return Census(**counts, last_compatible_age_s=age_s)


def _groups(found: frozenset[Reason]) -> Sequence[str]:
    """Name the counts that agents with these reasons are in."""
    if Reason.ABSENT in found or found & _OUTSIDE:
        return ()
    if found & _OTHER_WORK:
        return ("in_pool",)
    if found & _UNFIT:
        return ("in_pool", "serving_activity")
    rest = next((name for reason, name in (_INELIGIBLE | _FULL).items() if reason in found), None)
    groups = ["in_pool", "serving_activity", "compatible"]
    if not found & _INELIGIBLE.keys():
        groups.append("eligible_compatible")
    return groups if rest is None else [*groups, rest]


def _age_s(looks: Looks, walked: Sequence[Tier]) -> float | None:
    """Say for how long nothing has been heard of any agent that would be compatible."""
    departed = looks.snapshot.departed
    gone = ((client, looks.at(client)) for client in departed if is_within(client, walked))
    seen = [
        client.seen_at
        for client, found in chain(looks.each(walked), gone)
        if _INCOMPATIBLE.isdisjoint(found)
    ]
    return max(0.0, looks.snapshot.taken_at - max(seen)) if seen else None


POOL_VERDICTS: Mapping[Reason, PoolVerdict] = {
    Reason.OTHER_NAMESPACE: PoolVerdict.NO_LIVE_POLLERS,
    Reason.OTHER_QUEUE: PoolVerdict.NO_LIVE_POLLERS,
    Reason.ABSENT: PoolVerdict.NO_LIVE_POLLERS,
    Reason.ACTIVITY_NOT_SERVED: PoolVerdict.POLLERS_INCOMPATIBLE,
    Reason.OTHER_NODE: PoolVerdict.POLLERS_INCOMPATIBLE,
    Reason.OTHER_CLIENT_TYPE: PoolVerdict.POLLERS_INCOMPATIBLE,
    Reason.REQUIREMENTS_NOT_MET: PoolVerdict.POLLERS_INCOMPATIBLE,
    Reason.IN_PROBATION: PoolVerdict.POLLERS_IN_PROBATION,
    Reason.UNREACHABLE: PoolVerdict.POLLERS_UNREACHABLE,
    Reason.PLACEMENT_UNKNOWN: PoolVerdict.PLACEMENT_UNKNOWN,
    Reason.LINKED_ELSEWHERE: PoolVerdict.POLLERS_LINKED_ELSEWHERE,
    Reason.DRAINING: PoolVerdict.POLLERS_DRAINING,
    Reason.CAPACITY_UNANNOUNCED: PoolVerdict.POLLERS_CAPACITY_UNANNOUNCED,
    Reason.AT_CAPACITY: PoolVerdict.POLLERS_AT_CAPACITY,
    Reason.NO_WINDOW_FREE: PoolVerdict.NO_WINDOW_FREE,
    Reason.NO_TAB_FREE: PoolVerdict.NO_TAB_FREE,
    Reason.NO_FLOW_FREE: PoolVerdict.NO_FLOW_FREE,
    Reason.WINDOW_SHARED: PoolVerdict.NO_IDENTITY_FREE,
    Reason.WINDOW_DEDICATED: PoolVerdict.NO_IDENTITY_FREE,
    Reason.IDENTITY_ELSEWHERE: PoolVerdict.NO_IDENTITY_FREE,
    Reason.NO_SUCH_WINDOW: PoolVerdict.PROVISIONING_REFUSED,
    Reason.OTHER_IDENTITY: PoolVerdict.PROVISIONING_REFUSED,
    Reason.OTHER_OPTIONS: PoolVerdict.PROVISIONING_REFUSED,
    Reason.IDENTITY_NOT_NAMED: PoolVerdict.PROVISIONING_REFUSED,
    Reason.CREATION_NOT_PERMITTED: PoolVerdict.PROVISIONING_REFUSED,
    Reason.CANNOT_PROVISION_TYPE: PoolVerdict.PROVISIONING_REFUSED,
    Reason.NO_APP_NODE: PoolVerdict.PROVISIONING_REFUSED,
    Reason.NO_BROWSER_WINDOW_REGISTRY: PoolVerdict.PROVISIONING_REFUSED,
    Reason.NO_FLOW_REGISTRY: PoolVerdict.PROVISIONING_REFUSED,
    Reason.NOT_PROVISIONING_OWNER: PoolVerdict.PROVISIONING_REFUSED,
    Reason.CREATION_FAILED: PoolVerdict.PROVISIONING_REFUSED,
    Reason.LOST_RACE: PoolVerdict.SERVED_RACED,
}
"""What each reason of an agent says of the pool; those for one tab alone say nothing."""

FOR_WANT_OF_A_SLOT = frozenset(
    {
        PoolVerdict.NO_LIVE_POLLERS,
        PoolVerdict.POLLERS_INCOMPATIBLE,
        PoolVerdict.POLLERS_IN_PROBATION,
        PoolVerdict.POLLERS_UNREACHABLE,
        PoolVerdict.POLLERS_LINKED_ELSEWHERE,
        PoolVerdict.POLLERS_DRAINING,
        PoolVerdict.POLLERS_AT_CAPACITY,
        PoolVerdict.POLLERS_CAPACITY_UNANNOUNCED,
    }
)
"""What is never the matter while an eligible agent has a free slot."""


def classify(declaration: Declaration, found: Census) -> PoolVerdict:
    """Say what is the matter, from what the agents are and how many slots they have.

    SERVED_RACED says that a slot is free; what else a browser may lack is in the reasons.
    """
    if declaration is Declaration.UNDECLARED:
        return PoolVerdict.NO_QUEUE_DECLARATION
    if not found.in_pool:
        return PoolVerdict.NO_LIVE_POLLERS
    if not found.compatible:
        return PoolVerdict.POLLERS_INCOMPATIBLE
    if not found.eligible_compatible:
        return _ineligible(found)
    if found.at_capacity + found.capacity_unannounced < found.eligible_compatible:
        return PoolVerdict.SERVED_RACED
    if found.at_capacity:
        return PoolVerdict.POLLERS_AT_CAPACITY
    return PoolVerdict.POLLERS_CAPACITY_UNANNOUNCED


def _ineligible(found: Census) -> PoolVerdict:
    """Say why none of those that would fit is eligible: what passes by itself comes first."""
    if found.in_probation:
        return PoolVerdict.POLLERS_IN_PROBATION
    if found.reachability_lost:
        return PoolVerdict.POLLERS_UNREACHABLE
    if found.linked_elsewhere:
        return PoolVerdict.POLLERS_LINKED_ELSEWHERE
    return PoolVerdict.POLLERS_DRAINING


__all__ = [
    "FOR_WANT_OF_A_SLOT",
    "POOL_VERDICTS",
    "Census",
    "Declaration",
    "Declared",
    "PoolVerdict",
    "census",
    "classify",
]
