"""Which tab a name means, and whether a namespace may look at it now."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from farm.clock import Clock
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ClientType,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Snapshot,
    Token,
)
from farm.errors import NotFoundError
from farm.stores.ports.contexts import ContextRegistry
from farm.stores.ports.ledger import Ledger

_FRESH_S = 0.5
_JOBS_KEPT = 1_000


def live_id(client: Client, context_id: ContextId) -> str:
    """Name a context unambiguously: `T1@3@agent-1` is T1 of the third life of agent-1's browser.

    The agent's name is last and may hold anything; of the context's name what would be ambiguous
    is escaped.
    """
    context = context_id.replace("~", "~0").replace("@", "~1")
    return f"{context}@{client.epoch}@{client.client_id}"


def in_path(context: str) -> str:
    """Write a context into a path as browsers and clients do, as a cookie's path must agree."""
    return quote(context, safe="@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A tab that is lent to the namespace, and to whom."""

    context: str
    namespace: Namespace
    client_id: ClientId
    link: LinkId | None
    epoch: int
    context_id: ContextId
    label: str
    token: Token
    task_id: str
    job_id: str | None = None
    job: str | None = None


class Places:
    """Finds tabs that are lent: of any other nobody knows whose it is what is to be seen there."""

    def __init__(self, registry: ContextRegistry, ledger: Ledger, clock: Clock) -> None:
        self._registry = registry
        self._ledger = ledger
        self._clock = clock
        self._read: tuple[Instant, Snapshot] | None = None
        self._jobs: OrderedDict[tuple[ClientId, ContextId, Token], Mapping[str, str]] = (
            OrderedDict()
        )

    async def find(self, namespace: Namespace, context: str) -> Place:
        """Return the tab of this name that is lent to the namespace.

        Raises:
            NotFoundError: If there is none; one that is another's is not told apart (P16).
        """
        for client, assignment in await self._lent(namespace):
            if live_id(client, assignment.context_id) == context:
                return await self._place(client, assignment)
        raise NotFoundError(f"there is no tab {context} with work of this namespace in it")

    async def holds(self, place: Place) -> bool:
        """Tell whether the tab is still lent as it was."""
        return await self.agent_of(place) is not None

    async def agent_of(self, place: Place) -> Client | None:
        """Return the tab's agent as it is now; None if the tab is no longer lent as it was."""
        for client, assignment in await self._lent(place.namespace):
            if client.client_id == place.client_id and assignment.token == place.token:
                return client if client.epoch == place.epoch else None
        return None

    async def all(self, namespace: Namespace) -> Sequence[Place]:
        """Return every tab that is lent to the namespace."""
        return [await self._place(c, assignment) for c, assignment in await self._lent(namespace)]

    async def _lent(self, namespace: Namespace) -> Sequence[tuple[Client, Assignment]]:
        snapshot = await self._snapshot()
        return [
            (client, assignment)
            for client in snapshot.clients
            if namespace in client.namespaces and client.client_type is ClientType.BROWSER
            for assignment in client.assignments.values()
            if assignment.namespace == namespace and assignment.context_id in client.contexts
        ]

    async def _snapshot(self) -> Snapshot:
        """Read the registry, at most twice a second however many look."""
        now = self._clock()
        if self._read is None or not 0 <= now - self._read[0] < _FRESH_S:
            self._read = now, await self._registry.snapshot(now=now)
        return self._read[1]

    async def _place(self, client: Client, assignment: Assignment) -> Place:
        context = client.contexts[assignment.context_id]
        job = await self._job(assignment)
        where = context.window_id
        return Place(
            context=live_id(client, assignment.context_id),
            namespace=assignment.namespace,
            client_id=client.client_id,
            link=client.link,
            epoch=client.epoch,
            context_id=assignment.context_id,
            label=assignment.context_id if where is None else f"{where} · {assignment.context_id}",
            token=assignment.token,
            task_id=assignment.task_id,
            **job,
        )

    async def _job(self, assignment: Assignment) -> Mapping[str, str]:
        """Return what a place says of the job in it, if one runs there."""
        held = (assignment.client_id, assignment.context_id, assignment.token)
        if held in self._jobs:
            return self._jobs[held]
        for attempt in await self._ledger.running_attempts():
            if (attempt.client_id, attempt.context_id, attempt.token) == held:
                try:
                    job = await self._ledger.job(assignment.namespace, attempt.job_id)
                except NotFoundError:
                    return {}
                # What an assignment is for stays the same, and the wall asks every second.
                self._jobs[held] = {"job_id": job.job_id, "job": job.name}
                while len(self._jobs) > _JOBS_KEPT:
                    self._jobs.popitem(last=False)
                return self._jobs[held]
        return {}
