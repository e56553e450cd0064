"""Namespaces as the ledger has them, and where their agents may be."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from farm.core.admission import Refusal, RefusedFor
from farm.core.model import Instant, Namespace
from farm.core.tiers import NodePlacement, Pinned, Unplaced

Minting = Literal["open", "closed"]


class Origin(StrEnum):
    """How a namespace came to be."""

    WORKER_MINT = "worker_mint"
    """An agent came that serves it."""
    START_MINT = "start_mint"
    """The farm needs it at its start."""
    EXPLICIT = "explicit"
    """Somebody made it."""
    INFERRED = "inferred"
    """It had tokens or jobs before namespaces were written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRecord:
    """One namespace."""

    name: Namespace
    origin: Origin
    created_at: Instant
    placement: NodePlacement = field(default_factory=Unplaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """Every namespace is there, and takes an agent of this node."""

    new: tuple[NamespaceRecord, ...] = ()
    """Those that were not there before."""


def decide(
    known: Sequence[NamespaceRecord], wanted: Sequence[Namespace], node: str | None, minting: bool
) -> tuple[Namespace, ...] | Refusal:
    """Return what is to be minted for an agent of these namespaces on this node, or refuse it.

    Args:
        known: The records of those wanted that there are.
        wanted: The namespaces it wants to serve; it may serve them.
        node: Where it says it is.
        minting: Namespaces that are not there may be made.
    """
    there = {record.name for record in known}
    missing = tuple(name for name in wanted if name not in there)
    if missing and not minting:
        named = ", ".join(repr(name) for name in sorted(missing))
        detail = f"there is no namespace {named}: `farm namespaces create` makes one"
        return Refusal(reason=RefusedFor.NAMESPACE_UNKNOWN, detail=detail)
    for record in sorted(known, key=lambda one: one.name):
        if (refusal := misplaced(record, node)) is not None:
            return refusal
    return missing


def misplaced(record: NamespaceRecord, node: str | None) -> Refusal | None:
    """Refuse an agent that is not where a namespace is pinned to."""
    match record.placement:
        case Pinned(labels=labels) if not node or node not in labels:
            where = f"on node {node!r}" if node else "on no node"
            required = ", ".join(repr(label) for label in sorted(labels)) or "(none)"
            detail = f"namespace {record.name!r} is pinned to {required}, and this agent is {where}"
            return Refusal(reason=RefusedFor.PLACEMENT, detail=detail)
        case _:
            return None
