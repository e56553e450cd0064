"""The port by which the farm tells what happens in it, and others follow that."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from farm.core.model import Instant, Namespace


class EventKind(StrEnum):
    """What has happened."""

    AGENT_REFUSED = "agent_refused"
    """It was not let in, for another reason than the last time."""
    AGENT_CONNECTED = "agent_connected"
    AGENT_DISCONNECTED = "agent_disconnected"
    """With a `reason` that is known to be so: `disconnect`, `timeout` or `deregistered`."""
    AGENT_DRAINING = "agent_draining"
    """It takes nothing new, or (`draining` false) takes again what there is."""
    DISPATCH_PARKED = "dispatch_parked"
    """Work waits that nobody can be given now, with the census of its pool."""
    NAMESPACE_CREATED = "namespace_created"
    PLACEMENT_CHANGED = "placement_changed"
    VERDICT_CHANGED = "verdict_changed"
    """An agent is believed to be within reach, or not, otherwise than before."""
    DEPLOYMENT_CHANGED = "deployment_changed"
    """A deployment was declared, declared otherwise, or is declared no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """One thing that has happened, as one namespace may see it."""

    seq: int
    """Greater than that of all that was told before, whichever coordinator told it."""
    kind: str
    """An `EventKind`, or one of a coordinator that knows more than this one."""
    namespace: Namespace
    at: Instant
    data: Mapping[str, Any]
    """A JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told a namespace after a number."""

    events: tuple[ClusterEvent, ...]
    until: int
    """Nothing else was told it up to this number."""


class ClusterEvents(Protocol):
    """Tells all namespaces, each its own, in one sequence for all coordinators that share a store.

    So much is held as the implementation says; older events are gone.
    """

    def publish(self, kind: str, namespace: Namespace, data: Mapping[str, Any]) -> None:
        """Tell a namespace something, in a while and in order; never waits, and never fails.

        `kind` is an `EventKind`.

        What concerns several namespaces is told each, in words that it may see. An event is a
        courtesy: it may be lost with its coordinator, or while the store is away.
        """
        ...

    def last(self) -> int:
        """Return the number up to which everything is known here."""
        ...

    def read(self, namespace: Namespace, after: int, *, limit: int) -> Told | None:
        """Return what a namespace was told after a number; None if some of that may be missing."""
        ...

    async def changed_since(self, seq: int) -> None:
        """Return as soon as anything after `seq` is known here, or nothing more will be told."""
        ...

    @property
    def closed(self) -> bool:
        """Nothing more will be told here."""
        ...

    def close(self) -> None:
        """Wake everybody who waits for the last time."""
        ...

    async def run(self) -> None:
        """Carry what is told here to the others and back, until cancelled."""
        ...
