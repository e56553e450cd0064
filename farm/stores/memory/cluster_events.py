"""What has happened lately, in this process."""

import asyncio
from collections.abc import Mapping
from typing import Any

from farm.clock import Clock
from farm.core.model import Namespace
from farm.stores.event_log import HELD, EventLog
from farm.stores.ports.cluster_events import ClusterEvent

_MICROS = 1_000_000


class MemoryClusterEvents(EventLog):
    """The `ClusterEvents` port, of a coordinator that is alone.

    Numbers are microseconds since the Unix epoch, or the next one: so they go on through restarts,
    and who comes back with one of an earlier life learns that what followed is gone.
    """

    def __init__(self, clock: Clock, *, held: int = HELD) -> None:
        super().__init__(held=held)
        self._clock = clock
        self.begin(self._next())

    def publish(self, kind: str, namespace: Namespace, data: Mapping[str, Any]) -> None:
        """See `ClusterEvents.publish`."""
        self.append(
            ClusterEvent(
                seq=self._next(), kind=kind, namespace=namespace, at=self._clock(), data=dict(data)
            )
        )

    def _next(self) -> int:
        return max(self.last() + 1, int(self._clock() * _MICROS))

    async def run(self) -> None:
        """See `ClusterEvents.run`; there are no others."""
        await asyncio.Event().wait()
