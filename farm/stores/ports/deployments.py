"""The port of what is declared to be rolled out: deployments, and the task queues they serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from farm.core.census import Declared
from farm.core.model import Instant, Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A name that agents are rolled out under, and which task queues they serve."""

    namespace: Namespace
    name: str
    queues: tuple[str, ...]
    created_at: Instant
    updated_at: Instant


class Association(StrEnum):
    """Whether an agent's deployment is one that was declared."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    """It names none, or one that is not declared, where some are."""
    UNCHECKED = "unchecked"
    """Nothing is declared in the namespace."""


def association(deployment: str | None, declared: Sequence[Deployment]) -> Association:
    """Hold what an agent says against what is declared in a namespace."""
    if not declared:
        return Association.UNCHECKED
    known = any(one.name == deployment for one in declared)
    return Association.KNOWN if known else Association.UNKNOWN


class QueueCatalogue(Protocol):
    """Knows which task queues there are."""

    async def look_up(self, namespace: Namespace, task_queue: str) -> Declared:
        """Tell whether a task queue is declared in a namespace, and if not what is near."""
        ...


class Deployments(Protocol):
    """What is declared. It bounds no agent: those of no deployment are let in as any other."""

    async def declare(
        self, namespace: Namespace, name: str, queues: Sequence[str], *, now: Instant
    ) -> tuple[Deployment, bool]:
        """Declare a deployment, or declare it otherwise; return it, and whether it is new."""
        ...

    async def deployments(self, namespace: Namespace) -> Sequence[Deployment]:
        """Return those of a namespace, by name."""
        ...

    async def withdraw(self, namespace: Namespace, name: str) -> bool:
        """Declare a deployment no more; False if it was not declared."""
        ...
