"""Two coordinators that hand each other parcels, in one process and over a Redis."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from farm.stores.memory import MemoryParcels, PostOffice
from farm.stores.ports.parcels import Parcels
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisParcels, RedisRegistry, RedisRoutes, connect

__all__ = ["LEASE_S", "ONE", "TWO", "NewShard", "Pair", "box", "pair", "shared_redis"]

ONE, TWO = CoordinatorId("one"), CoordinatorId("two-7")
LEASE_S = 30.0
NewShard = Callable[[int], Awaitable[RedisRegistry]]
Leave = Callable[[CoordinatorId], Awaitable[None]]
Pair = tuple[Parcels, Parcels, Leave]


@pytest.fixture(params=["memory", "redis"])
def shared_redis(request: pytest.FixtureRequest) -> tuple[NewShard, str] | None:
    """What makes a shard of a Redis, and its URL; nothing where they are in one process."""
    if request.param == "memory":
        return None
    return request.getfixturevalue("new_redis_registry"), request.getfixturevalue("redis_url")


@pytest.fixture
def box() -> int:
    """How many parcels one holds."""
    return 10_000


@pytest.fixture
async def pair(shared_redis: tuple[NewShard, str] | None, box: int) -> AsyncIterator[Pair]:
    """Two coordinators that are there, and how one leaves."""
    if shared_redis is None:
        office = PostOffice()

        async def leave(coordinator: CoordinatorId) -> None:
            office.leave(coordinator)

        one, two = (MemoryParcels(name, office, box=box) for name in (ONE, TWO))
        yield one, two, leave
        return
    new_shard, url = shared_redis
    shard = await new_shard(1)
    async with AsyncExitStack() as stack:
        made = []
        routes = {}
        for name in (ONE, TWO):
            redis = connect(url, decode=False)
            stack.push_async_callback(redis.aclose)
            made.append(RedisParcels(shard, redis, coordinator=name, box=box))
            routes[name] = RedisRoutes(shard, coordinator=name, lease_s=LEASE_S)
            await routes[name].renew(())

        async def leave_redis(coordinator: CoordinatorId) -> None:
            await routes[coordinator].leave()

        yield made[0], made[1], leave_redis
