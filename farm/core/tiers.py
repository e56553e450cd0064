"""On which nodes a request is tried, in order.

Where a namespace is placed is looked up when work is handed out, and written into nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from farm.core.decide import Verdict, explain
from farm.core.eligibility import Reason, reject_client
from farm.core.model import Client, Request, Snapshot
from farm.core.placement import Means

Tier = str | None
"""A node; None is any, and no node at all."""
NOWHERE = ""
"""A node that no agent is on."""
_EVERYTHING = Means()


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
    """Tell whether a client is on a node of the tiers; of several it is counted once."""
    return None in walked or client.node in walked


def among(request: Request, walked: Sequence[Tier], client: Client) -> Request:
    """Return the request as it was asked of this client, or would have been."""
    if is_within(client, walked):
        return at(request, None)
    return at(request, walked[0] if walked else NOWHERE)


def explain_over(
    request: Request, walked: Sequence[Tier], snapshot: Snapshot, means: Means = _EVERYTHING
) -> Verdict:
    """Say for each client why it would not do in exactly the tiers walked, each client once."""
    if len(walked) == 1:
        return explain(at(request, walked[0]), snapshot, means)
    inside = explain(at(request, None), snapshot, means)
    outside = {
        client.client_id: _reject(among(request, walked, client), client, snapshot)
        for client in snapshot.clients
        if not is_within(client, walked)
    }
    clients = {key: outside.get(key) or reason for key, reason in inside.clients.items()}
    contexts = {key: why for key, why in inside.contexts.items() if key[0] not in outside}
    return Verdict(clients=clients, contexts=contexts)


def excluded_over(
    request: Request, walked: Sequence[Tier], snapshot: Snapshot
) -> tuple[Client, ...]:
    """Return who would be candidates in the tiers walked and is kept out for now, each once."""
    return tuple(
        client
        for client in snapshot.clients
        if client.excluded is not None
        and _reject(among(request, walked, client), replace(client, excluded=None), snapshot)
        in _OF_CANDIDATES
    )


_OF_CANDIDATES = (None, Reason.AT_CAPACITY, Reason.CAPACITY_UNANNOUNCED)
"""What is said of a candidate: whether it has room is another question."""


def _reject(request: Request, client: Client, snapshot: Snapshot) -> Reason | None:
    return reject_client(
        request, client, now=snapshot.taken_at, window_s=snapshot.presence_window_s
    )
