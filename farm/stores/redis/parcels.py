"""Parcels between coordinators, over one shard of a Redis."""

from collections.abc import Sequence

from redis.asyncio import Redis

from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis.connection import store_errors
from farm.stores.redis.scripts import Scripts
from farm.stores.redis.shard import RedisShard

_AT_ONCE = 64
_WAIT_MS = 1_000
"""Less than a reply of Redis may take."""

Entries = list[tuple[bytes, dict[bytes, bytes]]]


class RedisParcels:
    """The `Parcels` port. A box is a stream, out of which its coordinator alone reads.

    A coordinator is there by the lease that its `RedisRoutes` renews, and its box goes with that.

    Args:
        shard: The registry whose Redis and store epoch it shares; to be open.
        redis: A client from `connect(decode=False)`, of its own, so that nothing else waits for
            what is big.
        coordinator: As its `RedisRoutes` has it.
        box: How many parcels a box holds.
    """

    def __init__(
        self, shard: RedisShard, redis: Redis, *, coordinator: CoordinatorId, box: int = 10_000
    ) -> None:
        self.coordinator = coordinator
        self._shard = shard
        self._redis = redis
        self._scripts = Scripts(redis)
        self._box = box
        self._last_read = b"0"
        self._read: list[bytes] = []
        """What is to be deleted with the next reading, so that nobody waits for that."""

    async def there(self) -> Sequence[CoordinatorId]:
        """See `Parcels.there`."""
        _, *there = await self._shard.run("parcel_there")
        return [CoordinatorId(one) for one in there]

    async def post(self, to: CoordinatorId, parcel: bytes) -> bool:
        """See `Parcels.post`."""
        post = self._shard.run("parcel_post", to, self._box, parcel, scripts=self._scripts)
        return bool((await post)[0] == b"ok")

    async def receive(self) -> Sequence[bytes]:
        """See `Parcels.receive`."""
        box = f"{self._shard.tag}:parcels:{self.coordinator}"
        with store_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                if self._read:
                    pipe.xdel(box, *self._read)
                pipe.xread({box: self._last_read}, count=_AT_ONCE, block=_WAIT_MS)
                found: list[tuple[bytes, Entries]] = (await pipe.execute())[-1]
        entries = found[0][1] if found else []
        self._read = [number for number, _ in entries]
        self._last_read = self._read[-1] if self._read else self._last_read
        return [fields[b"parcel"] for _, fields in entries]
