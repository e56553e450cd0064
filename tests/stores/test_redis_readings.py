"""What is read of Redis, how much at once, and who is told of a change."""

import asyncio
from itertools import count
from typing import Any

import pytest
from redis.asyncio import Redis

from farm.errors import StoreUnavailableError
from farm.stores.redis import RedisClock, connect
from tests.patience import PATIENCE_S
from tests.stores.own_redis import New, over, own_url, until_subscribed
from tests.stores.pool import LINK, T0, A, at, hello, only, registered, reported

__all__ = ["own_url"]


async def test_a_snapshot_carries_only_what_changed_and_is_one_call(
    new_redis_registry: New,
) -> None:
    registry = await new_redis_registry(1)
    for name in ("a", "b"):
        await registered(registry, hello(name), epoch=name)
    first = await registry.snapshot(now=T0)
    before = await _calls(registry.redis)
    await registry.set_draining(A)
    second = await registry.snapshot(now=T0)
    assert await _calls(registry.redis) == before + 2
    assert second.clients[0].draining
    assert second.clients[1] is first.clients[1]


async def test_a_snapshot_of_which_nothing_is_new_is_the_last_one(new_redis_registry: New) -> None:
    registry = await new_redis_registry(1)
    await registered(registry)
    first = await registry.snapshot(now=T0)
    assert (await registry.snapshot(now=at(1))).clients is first.clients
    await registry.heard(A, LINK, now=at(2))
    again = await registry.snapshot(now=at(2))
    assert again.clients[0].seen_at == at(2)
    assert again.clients[0].capacity is first.clients[0].capacity


async def test_a_snapshot_notes_who_went_and_came_again(new_redis_registry: New) -> None:
    registry = await new_redis_registry(1)
    first = await registered(registry)
    await registry.snapshot(now=T0)
    await registry.remove(A, epoch=first.epoch)
    assert (await registry.snapshot(now=T0)).clients == ()
    second = await registered(registry)
    await registry.remove(A, epoch=second.epoch)
    third = await registered(registry)
    assert (await registry.snapshot(now=T0)).clients == (third,)


async def test_a_snapshot_forgets_who_has_not_come_in_a_past_state(
    new_redis_registry: New,
) -> None:
    registry = await new_redis_registry(1)
    await registered(registry)
    await registered(registry, hello("b"), epoch="b")
    await registry.snapshot(now=T0)
    keys = await registry.redis.keys(f"{{farm:{registry.shard}}}:*:b")
    await registry.redis.delete(*keys)
    await registry.redis.zrem(f"{{farm:{registry.shard}}}:clients", "b")
    assert [one.client_id for one in (await registry.snapshot(now=T0)).clients] == [A]


async def test_a_great_farm_is_read_in_parts(new_redis_registry: New) -> None:
    registry = await new_redis_registry(1)
    names = [f"agent-{n:03}" for n in range(450)]
    for name in names:
        await registered(registry, hello(name), epoch=name)
    before = await _calls(registry.redis)
    clients = (await registry.snapshot(now=T0)).clients
    assert [client.client_id for client in clients] == names
    assert await _calls(registry.redis) == before + 3


async def _calls(redis: Redis) -> int:
    info = await redis.info("commandstats")
    return int(info["cmdstat_evalsha"]["calls"])


async def test_a_report_of_thousands_of_contexts_fits(new_redis_registry: New) -> None:
    registry = await new_redis_registry(1)
    client = await registered(registry)
    await reported(registry, *(f"T{n}" for n in range(9000)), client=client)
    now = await only(registry)
    assert (len(now.contexts), len(now.windows)) == (9000, 9000)


async def test_a_change_by_one_coordinator_wakes_another(own_url: str) -> None:
    one, other = over(own_url, safety_s=60), over(own_url, safety_s=60)
    for registry in (one, other):
        await registry.open(store_epoch=1)
    async with asyncio.timeout(PATIENCE_S):
        for n in count():
            async with asyncio.TaskGroup() as group:
                waits = [
                    group.create_task(other.changed_since(other.generation())) for _ in range(3)
                ]
                if n:
                    # A waiter that went away leaves the others waiting, not deaf.
                    await asyncio.sleep(0)
                    waits[0].cancel()
                await registered(one, hello(f"{n}"), epoch="e")
            if n == 3:
                break
    for registry in (one, other):
        await registry.close()
        await registry.redis.aclose()


async def test_a_waiter_whose_message_was_lost_looks_by_itself(own_url: str) -> None:
    registry = over(own_url, safety_s=0.05)
    await registry.open(store_epoch=1)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(registry.changed_since(registry.generation()))
        await until_subscribed(registry.redis)
        await registry.redis.incr("{farm:0}:generation")
    await registry.close()
    await registry.redis.aclose()


async def test_the_clock_shows_the_time_of_redis_and_counts_on_between_readings(
    redis_url: str,
) -> None:
    redis = connect(redis_url)
    steady = [100.0]
    clock = RedisClock(redis, steady=lambda: steady[0])
    with pytest.raises(StoreUnavailableError):
        clock()
    await clock.read()
    seconds, _ = await redis.time()
    assert abs(clock() - seconds) < 60
    before = clock()
    steady[0] += 7.5
    assert clock() == before + 7.5
    await redis.aclose()


class Away:
    """A Redis whose clock is 500 s ahead, at the other end of a way that takes its time."""

    def __init__(self) -> None:
        self.steady_s, self.ahead_s = 100.0, 500.0
        self.there_s = self.back_s = 0.001

    @property
    def now(self) -> float:
        return self.steady_s + self.ahead_s

    async def time(self) -> tuple[int, int]:
        self.steady_s += self.there_s
        told = self.now
        self.steady_s += self.back_s
        return int(told), round(told % 1 * 1e6)


async def test_an_answer_that_took_long_does_not_undo_what_a_quick_one_has_said() -> None:
    redis: Any = Away()
    clock = RedisClock(redis, steady=lambda: redis.steady_s)
    await clock.read()
    for redis.there_s, redis.back_s in ((0.0, 4.0), (4.0, 0.0)):
        redis.steady_s += 10
        await clock.read()
        assert abs(clock() - redis.now) < 0.05


async def test_at_first_an_answer_that_took_long_is_not_believed() -> None:
    ways = iter([4.0, 2.0, 0.01])

    class Busy(Away):
        async def time(self) -> tuple[int, int]:
            self.back_s = next(ways)
            return await super().time()

    redis: Any = Busy()
    clock = RedisClock(redis, steady=lambda: redis.steady_s)
    await clock.read()
    assert abs(clock() - redis.now) < 0.02


async def test_a_clock_of_redis_that_was_set_is_followed() -> None:
    redis: Any = Away()
    clock = RedisClock(redis, steady=lambda: redis.steady_s)
    await clock.read()
    for ahead_s in (900.0, 100.0):
        redis.ahead_s = ahead_s
        await clock.read()
        assert abs(clock() - redis.now) < 0.02
