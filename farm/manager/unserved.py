"""Who waits for a context now, and why; an entry goes with its waiter, however that ends."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from farm.core.decide import Verdict
from farm.core.model import Instant, Namespace, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedTask:
    """One acquisition that waits."""

    request: Request
    verdict: Verdict
    """Of its last look."""
    since: Instant
    """When its first look came to nothing."""


Publish = Callable[[Verdict, Instant], None]


class Unserved:
    """The acquisitions that wait, the one that has waited for the longest first."""

    def __init__(self) -> None:
        self._waiting: dict[object, UnservedTask] = {}

    @contextmanager
    def waiter(self, request: Request) -> Iterator[Publish]:
        """Give what publishes the verdicts of one waiter, whose entry ends with the block."""
        key = object()

        def publish(verdict: Verdict, at: Instant) -> None:
            before = self._waiting.get(key)
            if before is None:
                now = UnservedTask(request=request, verdict=verdict, since=at)
            else:
                now = replace(before, verdict=verdict)
            self._waiting[key] = now

        try:
            yield publish
        finally:
            self._waiting.pop(key, None)

    def of(self, namespace: Namespace) -> Sequence[UnservedTask]:
        """Return those of a namespace."""
        return [one for one in self._waiting.values() if one.request.namespace == namespace]
