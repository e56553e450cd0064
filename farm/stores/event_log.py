"""The last events that are known in this process, whoever told them."""

import asyncio
from collections import deque
from itertools import takewhile

from farm.core.model import Namespace
from farm.stores.ports.cluster_events import ClusterEvent, Told

HELD = 10_000


class EventLog:
    """The last events, in order, and who waits for the next.

    Args:
        held: How many are; who asks for older ones learns that they are gone.
    """

    def __init__(self, *, held: int = HELD) -> None:
        self._held = held
        self._events: deque[ClusterEvent] = deque()
        self._last = self._floor = 0
        self._dropped: dict[Namespace, int] = {}
        """The last number of each namespace that is held no more."""
        self._stirred = asyncio.Event()
        self._closed = False

    @property
    def closed(self) -> bool:
        """See `ClusterEvents.closed`."""
        return self._closed

    def last(self) -> int:
        """See `ClusterEvents.last`."""
        return self._last

    def append(self, event: ClusterEvent) -> None:
        """Take in the next event, and wake who waits."""
        self._events.append(event)
        self._last = event.seq
        if len(self._events) > self._held:
            oldest = self._events.popleft()
            self._dropped[oldest.namespace] = oldest.seq
        self._wake()

    def begin(self, after: int) -> None:
        """Know nothing of what came before a number, and go on from there."""
        self._events.clear()
        self._dropped.clear()
        self._floor = self._last = after
        self._wake()

    def read(self, namespace: Namespace, after: int, *, limit: int) -> Told | None:
        """See `ClusterEvents.read`."""
        known_from = max(self._floor, self._dropped.get(namespace, 0))
        if not known_from <= after <= self._last:
            return None
        newer = list(takewhile(lambda event: event.seq > after, reversed(self._events)))
        theirs = [event for event in reversed(newer) if event.namespace == namespace]
        if len(theirs) <= limit:
            return Told(events=tuple(theirs), until=self._last)
        return Told(events=tuple(theirs[:limit]), until=theirs[limit - 1].seq)

    async def changed_since(self, seq: int) -> None:
        """See `ClusterEvents.changed_since`."""
        while self._last <= seq and not self._closed:
            await self._stirred.wait()

    def close(self) -> None:
        """See `ClusterEvents.close`."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()
