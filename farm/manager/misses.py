"""Why the last acquisitions of a namespace came to nothing; for people, and bounded."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from farm.core.decide import ContextKey, Verdict
from farm.core.eligibility import Reason
from farm.core.model import ClientId, Instant, Namespace, Request, TaskId

_PER_NAMESPACE = 50
_NAMESPACES = 1_000
_NAMED = 100
"""So many clients, and so many contexts, are named in each; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """The last acquisition of one task that came to nothing."""

    at: Instant
    task_id: TaskId
    times: int
    """How often in a row, since it is remembered."""
    reason: Reason | None
    """None: nobody was there."""
    remedy: str
    counts: Mapping[Reason, int]
    """How many clients had which reason."""
    clients: Mapping[ClientId, Reason]
    contexts: Mapping[ContextKey, Reason]


class Misses:
    """Remembers the last misses, one for each task, and forgets the oldest."""

    def __init__(
        self, *, per_namespace: int = _PER_NAMESPACE, namespaces: int = _NAMESPACES
    ) -> None:
        self._per_namespace = per_namespace
        self._namespaces = namespaces
        self._found: OrderedDict[Namespace, OrderedDict[TaskId, Miss]] = OrderedDict()

    def note(self, request: Request, verdict: Verdict, at: Instant) -> None:
        """Remember that a task was given nothing."""
        found = self._found.setdefault(request.namespace, OrderedDict())
        self._found.move_to_end(request.namespace)
        before = found.pop(request.task_id, None)
        found[request.task_id] = Miss(
            at=at,
            task_id=request.task_id,
            times=1 if before is None else before.times + 1,
            reason=verdict.reason,
            remedy=verdict.remedy,
            counts=Counter(verdict.clients.values()),
            clients=dict(islice(verdict.clients.items(), _NAMED)),
            contexts=dict(islice(verdict.contexts.items(), _NAMED)),
        )
        if len(found) > self._per_namespace:
            found.popitem(last=False)
        if len(self._found) > self._namespaces:
            self._found.popitem(last=False)

    def forget(self, request: Request) -> None:
        """Forget a task's miss, now that it has what it asked for."""
        found = self._found.get(request.namespace)
        if found is None or found.pop(request.task_id, None) is None:
            return
        if not found:
            del self._found[request.namespace]

    def of(self, namespace: Namespace) -> Sequence[Miss]:
        """Return what is remembered of a namespace, the latest first."""
        return tuple(reversed(self._found.get(namespace, OrderedDict()).values()))
