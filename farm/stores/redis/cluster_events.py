"""What has happened lately, told by all coordinators of one shard of a Redis.

One stream holds it, in one sequence that a script counts: so a reader may go on at any coordinator
where it has stopped at another, and one that was away for a while catches up. Messages that are
not held (pub/sub) would be lost to who is away, and sequences of each coordinator would have to be
put in order by every reader. Each coordinator reads the stream once, into memory, whatever the
number of those who follow it there.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import Any, cast

import structlog

from farm.clock import Clock
from farm.core.model import Instant, Namespace
from farm.errors import StoreUnavailableError
from farm.stores.event_log import HELD, EventLog
from farm.stores.ports.cluster_events import ClusterEvent
from farm.stores.redis.connection import store_errors
from farm.stores.redis.records import json_text
from farm.stores.redis.shard import RedisShard

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 500
_WAIT_MS = 1_000
"""Less than a reply of Redis may take."""
_PAUSE_S = 0.5
_UNSENT = 10_000
"""So many wait for Redis to come back; the oldest are lost beyond that."""

Entries = list[tuple[str, dict[str, str]]]


class RedisClusterEvents(EventLog):
    """The `ClusterEvents` port.

    Args:
        shard: The registry whose Redis and store epoch it shares; to be open.
        clock: The time that all share.
        held: How many events are, in Redis and here.
    """

    def __init__(self, shard: RedisShard, clock: Clock, *, held: int = HELD) -> None:
        super().__init__(held=held)
        self._shard = shard
        self._clock = clock
        self._size = held
        self._unsent: deque[str] = deque(maxlen=_UNSENT)
        self._to_send = asyncio.Event()

    def publish(self, kind: str, namespace: Namespace, data: Mapping[str, Any]) -> None:
        """See `ClusterEvents.publish`."""
        fields = {"kind": kind, "namespace": namespace, "at": self._clock(), "data": dict(data)}
        self._unsent.append(json_text(fields))
        self._to_send.set()

    async def run(self) -> None:
        """See `ClusterEvents.run`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send(), name="send events")
            group.create_task(self._follow(), name="follow events")

    async def _send(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            while self._unsent:
                text = self._unsent.popleft()
                try:
                    await self._shard.run("event_publish", self._size, text)
                except StoreUnavailableError as error:
                    # Whether it was written is not known: told twice would be worse than not told.
                    log.warning("events.not_told", reason=error.detail)
                    await asyncio.sleep(_PAUSE_S)

    async def _follow(self) -> None:
        begun = False
        while True:
            try:
                if not begun:
                    await self.catch_up()
                    begun = True
                self._take(await self._news())
            except StoreUnavailableError as error:
                log.warning("events.store_unavailable", reason=error.detail)
                await asyncio.sleep(_PAUSE_S)

    async def catch_up(self) -> None:
        """Read what is held, or go on from what was told last."""
        redis, tag = self._shard.redis, self._shard.tag
        with store_errors():
            last = await cast("Awaitable[str | None]", redis.get(f"{tag}:events_last"))
            found = await cast(
                "Awaitable[Entries]", redis.xrevrange(f"{tag}:events", count=self._size)
            )
        found.reverse()
        self.begin(int(found[0][1]["before"] if found else last or 0))
        self._take(found)

    async def _news(self) -> Entries:
        stream = f"{self._shard.tag}:events"
        with store_errors():
            found = await cast(
                "Awaitable[list[tuple[str, Entries]]]",
                self._shard.redis.xread(
                    {stream: f"{self.last()}-0"}, count=_AT_ONCE, block=_WAIT_MS
                ),
            )
        return found[0][1] if found else []

    def _take(self, entries: Entries) -> None:
        for number, fields in entries:
            seq, before = int(number.partition("-")[0]), int(fields["before"])
            if before > self.last():
                self.begin(before)  # what came between is gone
            elif before < self.last():
                self.begin(seq - 1)  # Redis has lost its memory, and who knows what was in it
            self.append(_event_of(seq, fields["event"]))


def _event_of(seq: int, text: str) -> ClusterEvent:
    found = json.loads(text)
    return ClusterEvent(
        seq=seq,
        kind=found["kind"],
        namespace=Namespace(found["namespace"]),
        at=Instant(found["at"]),
        data=found["data"],
    )
