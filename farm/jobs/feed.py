"""Tells those who watch a job that there is something new to read (P7)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Subscription:
    """One watcher of one job, or only of its coming to rest."""

    def __init__(self, *, rest_only: bool) -> None:
        self.rest_only = rest_only
        self._generation = 0
        self._stirred = asyncio.Event()

    def generation(self) -> int:
        """Return the number of the last change; take it before reading the ledger."""
        return self._generation

    def stir(self) -> None:
        """Count a change and wake the watcher."""
        self._generation += 1
        self._stirred.set()

    async def changed_since(self, generation: int, *, within_s: float) -> bool:
        """Wait for a change after `generation`; False if there was none in time."""
        try:
            async with asyncio.timeout(within_s):
                while self._generation <= generation:
                    self._stirred.clear()
                    await self._stirred.wait()
        except TimeoutError:
            return False
        return True


class Tell(Protocol):
    """Tells other coordinators of the same ledger; at once, and whether they hear it or not."""

    def __call__(self, job_id: str, *, may_rest: bool, queued: bool) -> None:
        """A job has changed."""
        ...


class JobFeed:
    """Notification per job. Holds nothing but the watchers there are now.

    Subscribe, take the generation, read the ledger, wait for a later one, read again: no change is
    lost, and however many come together wake a watcher once.
    """

    def __init__(self) -> None:
        self._watchers: dict[str, set[Subscription]] = {}
        self._closed = False
        self.tell: Tell | None = None
        """Where others work with the same ledger."""

    @property
    def closed(self) -> bool:
        """The farm is stopping; watchers end."""
        return self._closed

    def publish(self, job_id: str, *, may_rest: bool = True, queued: bool = False) -> None:
        """Something of this job has changed in the ledger; it may be at rest, unless said so."""
        self.heard(job_id, may_rest=may_rest)
        if self.tell is not None:
            self.tell(job_id, may_rest=may_rest, queued=queued)

    def heard(self, job_id: str, *, may_rest: bool) -> None:
        """Wake those who watch the job here; another coordinator has changed it, or this one."""
        for watcher in self._watchers.get(job_id, ()):
            if may_rest or not watcher.rest_only:
                watcher.stir()

    @contextmanager
    def subscribe(self, job_id: str, *, rest_only: bool = False) -> Iterator[Subscription]:
        """Watch a job for as long as the block lasts."""
        watcher = Subscription(rest_only=rest_only)
        self._watchers.setdefault(job_id, set()).add(watcher)
        try:
            yield watcher
        finally:
            left = self._watchers[job_id]
            left.discard(watcher)
            if not left:
                del self._watchers[job_id]

    def watched(self) -> int:
        """Count the watchers."""
        return sum(len(watchers) for watchers in self._watchers.values())

    def close(self) -> None:
        """Wake every watcher for the last time."""
        self._closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.stir()
