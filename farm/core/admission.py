"""Who may be let in as an agent, and with what it says of itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from farm.core.eligibility import canonical
from farm.core.json_values import json_flaw
from farm.core.model import ClientId, Namespace
from farm.core.pools import capacity_flaw, queue_of

_LONGEST_NAME = 200
"""Of a task queue or a node; jobs and tokens can't name a longer one."""
_LARGEST_METADATA = 64 * 1024
"""In characters of JSON: every coordinator holds it, and every list of agents has it."""


class RefusedFor(StrEnum):
    """Why an agent is not let in."""

    NOT_UNDERSTOOD = "not_understood"
    PROTOCOL = "protocol"
    CLIENT_ID = "client_id"
    METADATA = "metadata"
    CAPACITY = "capacity"
    TASK_QUEUE = "task_queue"
    NODE = "node"
    NAMESPACE = "namespace"
    NAMESPACE_UNKNOWN = "namespace_unknown"
    PLACEMENT = "placement"
    RUNS_ELSEWHERE = "runs_elsewhere"
    CLIENT_ID_IN_USE = "client_id_in_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An agent is not let in. It is refused as a whole, and nothing is left of it."""

    reason: RefusedFor
    detail: str
    """For people; two refusals are the same where this and the reason are."""
    retry: bool = True
    """It may be let in later as it is: it is to dial again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What an agent's token was made for. None is no bound."""

    namespaces: frozenset[Namespace] | None = None
    """None is the one that it was made in."""
    task_queues: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    metadata: Mapping[str, Sequence[Any] | None] | None = None
    """The keys it may have, each with the values it may have, or None for any."""


UNBOUNDED = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """What an agent may say of itself that comes with one token."""

    token_id: str
    namespaces: frozenset[Namespace]
    bounds: Bounds = UNBOUNDED
    own_metadata: frozenset[str] = frozenset()
    """Keys that agents have by themselves; no bound is about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an agent says of itself; an empty queue or node is none, as `Client` has it."""

    client_id: ClientId
    protocol: int
    namespaces: tuple[Namespace, ...]
    task_queue: str
    node: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_queue", queue_of(self.task_queue))
        object.__setattr__(self, "node", self.node or None)


def reject(claim: Claim, enrolment: Enrolment, spoken: range) -> Refusal | None:
    """Say why a claim is refused whatever the farm has in store; None if it is not.

    The policy comes first, then whether every namespace is one that the agent may serve.
    """
    return _by_policy(claim, enrolment, spoken) or _by_namespace(claim, enrolment)


def _by_policy(claim: Claim, enrolment: Enrolment, spoken: range) -> Refusal | None:
    if claim.protocol not in spoken:
        known = f"{spoken.start} to {spoken.stop - 1}"
        return _never(RefusedFor.PROTOCOL, f"this farm speaks {known}")
    if flaw := _metadata_flaw(claim.metadata):
        return _never(RefusedFor.METADATA, flaw)
    if refusal := _by_names(claim):
        return refusal
    if claim.max_concurrency == 0:
        detail = "max_concurrency is 0: an agent takes one job at a time at least"
        return _never(RefusedFor.CAPACITY, detail)
    if flaw := capacity_flaw(claim.max_concurrency):
        return _never(RefusedFor.CAPACITY, flaw)
    return _by_enrolment(claim, enrolment)


def _metadata_flaw(metadata: Mapping[str, Any]) -> str | None:
    if flaw := json_flaw(metadata, "metadata"):
        return flaw
    if (size := len(canonical(metadata))) > _LARGEST_METADATA:
        return f"metadata is {size} characters of JSON: {_LARGEST_METADATA} at most"
    return None


def _by_names(claim: Claim) -> Refusal | None:
    """Refuse what could not be named in a job, an address or a line of a list."""
    client_id = claim.client_id
    if client_id in {".", ".."} or not client_id.isprintable():
        detail = f"client_id is {client_id!r}: neither '.' nor '..', and no control characters"
        return _never(RefusedFor.CLIENT_ID, detail)
    if flaw := _name_flaw(claim.task_queue):
        return _never(RefusedFor.TASK_QUEUE, f"task_queue {flaw}")
    if claim.node is not None and (flaw := _name_flaw(claim.node)):
        return _never(RefusedFor.NODE, f"node {flaw}")
    return None


def _name_flaw(name: str) -> str | None:
    if len(name) > _LONGEST_NAME:
        return f"is {len(name)} characters long: {_LONGEST_NAME} at most"
    return None if name.isprintable() else f"is {name!r}: no control characters"


def _by_enrolment(claim: Claim, enrolment: Enrolment) -> Refusal | None:
    bounds = enrolment.bounds
    queues, nodes = bounds.task_queues, bounds.nodes
    if queues is not None and claim.task_queue not in queues:
        detail = f"its token is for {_named('task queue', queues)}, not {claim.task_queue!r}"
        return _never(RefusedFor.TASK_QUEUE, detail)
    if nodes is not None and claim.node is not None and claim.node not in nodes:
        return _never(
            RefusedFor.NODE, f"its token is for {_named('node', nodes)}, not {claim.node!r}"
        )
    beyond = _beyond(claim.metadata, bounds.metadata, enrolment.own_metadata)
    return None if beyond is None else _never(RefusedFor.METADATA, beyond)


def _beyond(
    metadata: Mapping[str, Any],
    bounds: Mapping[str, Sequence[Any] | None] | None,
    own: frozenset[str],
) -> str | None:
    if bounds is None:
        return None
    for key in sorted(metadata.keys() - own):
        if key not in bounds:
            return f"its token does not let it have metadata {key!r}"
        allowed = bounds[key]
        if allowed is None:
            continue
        texts = [canonical(one) for one in allowed]
        if canonical(metadata[key]) not in texts:
            return f"its token lets metadata {key!r} be {' or '.join(texts)} only"
    return None


def _by_namespace(claim: Claim, enrolment: Enrolment) -> Refusal | None:
    allowed = enrolment.namespaces
    if not claim.namespaces:
        return _never(RefusedFor.NAMESPACE, "it names no namespace to serve")
    others = sorted(set(claim.namespaces) - allowed)
    if not others:
        return None
    detail = f"its token is for {_named('namespace', allowed)}"
    return _never(RefusedFor.NAMESPACE, f"{detail}, not {_listed(others)}")


def _never(reason: RefusedFor, detail: str) -> Refusal:
    return Refusal(reason=reason, detail=detail, retry=False)


def _named(kind: str, names: Iterable[str]) -> str:
    names = sorted(names)
    return f"{kind}{'' if len(names) == 1 else 's'} {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names)) or "(none)"
