"""What coordinators hand each other arrives in order, once, or whoever posts it is told."""

import asyncio

import pytest

from farm.stores.memory import MemoryParcels
from farm.stores.ports.parcels import Parcels
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisParcels, RedisRoutes, connect
from tests.patience import PATIENCE_S
from tests.stores.boxes import ONE, TWO, NewShard, Pair, pair, shared_redis

__all__ = ["pair", "shared_redis"]

BOX = 20


@pytest.fixture
def box() -> int:
    return BOX


async def next_of(parcels: Parcels, count: int) -> list[bytes]:
    """Wait until so many have come."""
    got: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(got) < count:
            got += await parcels.receive()
    return got


async def test_parcels_arrive_in_order_and_once_whatever_is_in_them(pair: Pair) -> None:
    one, two, _ = pair
    sent = [b"", b"\xff\xfe\x00" * 100_000, "ü".encode(), b"\r\n*1\r\n"]
    for parcel in sent:
        assert await one.post(TWO, parcel)
    assert await next_of(two, len(sent)) == sent
    assert await one.post(TWO, b"later")
    assert await next_of(two, 1) == [b"later"]


async def test_who_waits_is_woken_by_the_next_one(pair: Pair) -> None:
    one, two, _ = pair
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(next_of(two, 1))
        assert await one.post(TWO, b"parcel")
    assert waiting.result() == [b"parcel"]


async def test_each_reads_its_own_box(pair: Pair) -> None:
    one, two, _ = pair
    assert await one.post(TWO, b"for two")
    assert await two.post(ONE, b"for one")
    assert await next_of(one, 1) == [b"for one"]
    assert await next_of(two, 1) == [b"for two"]


async def test_to_who_is_not_there_nothing_is_posted(pair: Pair) -> None:
    one, _, leave = pair
    assert set(await one.there()) == {ONE, TWO}
    assert await one.post(TWO, b"lost with it")
    await leave(TWO)
    assert not await one.post(TWO, b"parcel")
    assert not await one.post(CoordinatorId("nobody"), b"parcel")
    assert list(await one.there()) == [ONE]


async def test_a_full_box_takes_nothing_more_and_loses_nothing(pair: Pair) -> None:
    one, two, _ = pair
    sent = [str(number).encode() for number in range(BOX)]
    for parcel in sent:
        assert await one.post(TWO, parcel)
    assert not await one.post(TWO, b"too much")
    assert await next_of(two, BOX) == sent
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        reading = group.create_task(next_of(two, 1))  # which makes the room
        while not await one.post(TWO, b"room again"):
            pass
    assert reading.result() == [b"room again"]


async def test_in_redis_nothing_is_left_of_who_was_killed(
    new_redis_registry: NewShard, redis_url: str
) -> None:
    shard = await new_redis_registry(1)
    killed = RedisRoutes(shard, coordinator=TWO, lease_s=1.0)
    await killed.renew(())
    redis = connect(redis_url, decode=False)
    try:
        one = RedisParcels(shard, redis, coordinator=ONE)
        assert await one.post(TWO, b"parcel")
        async with asyncio.timeout(PATIENCE_S):
            while TWO in await one.there():
                pass
        assert not await one.post(TWO, b"parcel")
        lives = RedisRoutes(shard, coordinator=ONE, lease_s=0.1)
        async with asyncio.timeout(PATIENCE_S):
            while await redis.exists(f"{shard.tag}:parcels:{TWO}"):
                await lives.renew(())
    finally:
        await redis.aclose()


async def test_one_that_is_alone_is_there_by_itself() -> None:
    assert await MemoryParcels(ONE).there() == (ONE,)
    assert not await MemoryParcels(ONE).post(TWO, b"parcel")
