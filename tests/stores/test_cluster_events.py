"""What happens is told in one sequence, to each namespace its own; who misses some learns so."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from farm.core.model import Instant, Namespace
from farm.stores.memory import MemoryClusterEvents
from farm.stores.ports.cluster_events import ClusterEvents, EventKind, Told
from farm.stores.redis import RedisClusterEvents, RedisRegistry
from tests.patience import PATIENCE_S

NS, OTHER = Namespace("ns"), Namespace("other")
KIND = EventKind.AGENT_CONNECTED
HELD = 20
NOW = Instant(1_000_000.0)
NewShard = Callable[[int], Awaitable[RedisRegistry]]


def clock() -> Instant:
    return NOW


@pytest.fixture(params=["memory", "redis"])
def new_shard(request: pytest.FixtureRequest) -> NewShard | None:
    """Make a shard of a Redis, or nothing where a coordinator is alone."""
    if request.param == "memory":
        return None
    made: NewShard = request.getfixturevalue("new_redis_registry")
    return made


@pytest.fixture
async def events(new_shard: NewShard | None) -> AsyncIterator[ClusterEvents]:
    if new_shard is None:
        yield MemoryClusterEvents(clock, held=HELD)
        return
    async with running(RedisClusterEvents(await new_shard(1), clock, held=HELD)) as events:
        yield events


@asynccontextmanager
async def running(events: RedisClusterEvents) -> AsyncIterator[RedisClusterEvents]:
    await events.catch_up()
    task = asyncio.create_task(events.run())
    yield events
    task.cancel()
    await asyncio.wait([task])


async def told(events: ClusterEvents, count: int, after: int, of: Namespace = NS) -> Told:
    """Wait until so many events of a namespace are known, and return them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            last = events.last()
            found = events.read(of, after, limit=1_000)
            assert found is not None
            if len(found.events) >= count:
                return found
            await events.changed_since(last)


async def test_events_are_told_in_order_in_one_growing_sequence(events: ClusterEvents) -> None:
    before = events.last()
    for number in range(5):
        events.publish(KIND, NS, {"number": number})
    found = await told(events, 5, before)
    assert [event.data["number"] for event in found.events] == list(range(5))
    numbers = [event.seq for event in found.events]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > before
    assert found.until == numbers[-1] == events.last()
    assert {(event.kind, event.namespace, event.at) for event in found.events} == {(KIND, NS, NOW)}


async def test_a_namespace_is_told_its_own_alone(events: ClusterEvents) -> None:
    before = events.last()
    events.publish(KIND, OTHER, {"whose": "theirs"})
    events.publish(KIND, NS, {"whose": "ours"})
    assert [e.data for e in (await told(events, 1, before)).events] == [{"whose": "ours"}]
    assert [e.data for e in (await told(events, 1, before, OTHER)).events] == [{"whose": "theirs"}]


async def test_a_reader_goes_on_page_by_page_without_a_gap_or_a_duplicate(
    events: ClusterEvents,
) -> None:
    after = events.last()
    for number in range(10):
        events.publish(KIND, NS, {"number": number})
    await told(events, 10, after)
    seen: list[int] = []
    while page := events.read(NS, after, limit=3):
        if not page.events:
            break
        assert len(page.events) <= 3
        seen += [event.data["number"] for event in page.events]
        after = page.until
    assert seen == list(range(10))


async def test_who_was_too_slow_is_told_that_some_are_missing(events: ClusterEvents) -> None:
    before = events.last()
    events.publish(KIND, NS, {"number": 0})
    first = (await told(events, 1, before)).events[0].seq
    for number in range(1, HELD + 5):
        events.publish(KIND, NS, {"number": number})
    async with asyncio.timeout(PATIENCE_S):
        while events.read(NS, first, limit=1) is not None:
            await events.changed_since(events.last())
    assert events.read(NS, before, limit=1) is None
    assert events.read(NS, events.last(), limit=1) == Told(events=(), until=events.last())


async def test_a_noisy_namespace_makes_no_gap_in_a_quiet_one(events: ClusterEvents) -> None:
    before = events.last()
    events.publish(KIND, NS, {})
    quiet = (await told(events, 1, before)).events[0].seq
    for _ in range(HELD + 5):
        events.publish(KIND, OTHER, {})
    async with asyncio.timeout(PATIENCE_S):
        while events.read(OTHER, quiet, limit=1) is not None:
            await events.changed_since(events.last())
    assert events.read(NS, quiet, limit=1) == Told(events=(), until=events.last())


async def test_a_number_that_was_never_given_is_a_gap(events: ClusterEvents) -> None:
    assert events.read(NS, events.last() + 1, limit=1) is None
    assert events.read(NS, 0, limit=1) is None or events.last() == 0


async def test_closing_lets_everybody_go(events: ClusterEvents) -> None:
    waiting = asyncio.create_task(events.changed_since(events.last()))
    events.close()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    assert events.closed


async def test_in_memory_numbers_go_on_through_a_restart() -> None:
    before = MemoryClusterEvents(lambda: Instant(1.0))
    before.publish(KIND, NS, {})
    after = MemoryClusterEvents(lambda: Instant(2.0))
    assert after.last() > before.last()
    assert after.read(NS, before.last(), limit=1) is None


class TestSeveralCoordinators:
    """What one tells, every one knows, under the same number."""

    @pytest.fixture
    async def registry(self, new_redis_registry: NewShard) -> RedisRegistry:
        return await new_redis_registry(1)

    @pytest.fixture
    async def two(
        self, registry: RedisRegistry
    ) -> AsyncIterator[tuple[RedisClusterEvents, RedisClusterEvents]]:
        one, other = (RedisClusterEvents(registry, clock, held=HELD) for _ in range(2))
        async with running(one), running(other):
            yield one, other

    async def test_a_reader_at_any_coordinator_sees_what_every_one_tells(
        self, two: tuple[RedisClusterEvents, RedisClusterEvents]
    ) -> None:
        one, other = two
        one.publish(KIND, NS, {"by": "one"})
        await told(other, 1, 0)
        other.publish(KIND, NS, {"by": "other"})
        found = [await told(events, 2, 0) for events in two]
        assert found[0] == found[1]
        assert [event.data["by"] for event in found[0].events] == ["one", "other"]

    async def test_a_reader_goes_on_at_another_coordinator_that_came_later(
        self,
        registry: RedisRegistry,
        two: tuple[RedisClusterEvents, RedisClusterEvents],
    ) -> None:
        for number in range(3):
            two[0].publish(KIND, NS, {"number": number})
        first = (await told(two[0], 3, 0)).events[0]
        later = RedisClusterEvents(registry, clock, held=HELD)
        await later.catch_up()
        went_on = later.read(NS, first.seq, limit=10)
        assert went_on is not None
        assert [event.data["number"] for event in went_on.events] == [1, 2]

    async def test_what_redis_has_forgotten_is_a_gap(
        self,
        registry: RedisRegistry,
        two: tuple[RedisClusterEvents, RedisClusterEvents],
    ) -> None:
        one, _ = two
        one.publish(KIND, NS, {"number": 0})
        seen = (await told(one, 1, 0)).until
        await registry.redis.delete(f"{registry.tag}:events", f"{registry.tag}:events_last")
        one.publish(KIND, NS, {"number": 1})
        async with asyncio.timeout(PATIENCE_S):
            await one.changed_since(seen)
        assert one.read(NS, seen, limit=10) is None
        assert one.last() > seen

    async def test_one_that_redis_holds_no_more_between_others_is_a_gap(
        self,
        registry: RedisRegistry,
        two: tuple[RedisClusterEvents, RedisClusterEvents],
    ) -> None:
        for number in range(3):
            two[0].publish(KIND, NS, {"number": number})
        first, lost, last = (await told(two[0], 3, 0)).events
        await registry.redis.xdel(f"{registry.tag}:events", f"{lost.seq}-0")
        later = RedisClusterEvents(registry, clock, held=HELD)
        await later.catch_up()
        assert later.read(NS, first.seq, limit=10) is None
        went_on = later.read(NS, lost.seq, limit=10)
        assert went_on is not None
        assert went_on.events == (last,)
