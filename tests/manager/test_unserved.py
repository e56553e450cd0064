"""Who waits for a context is listed with the verdict of its last look, while it waits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from farm.core.census import PoolVerdict
from farm.core.eligibility import Reason
from farm.core.model import ClientId, Instant, Snapshot
from farm.core.pools import Exclusion
from farm.errors import StoreUnavailableError
from farm.manager import NotAcquired, WorkerContextManager
from farm.manager.manager import Acquired
from tests.manager.floor import NS, Floor, turns
from tests.patience import PATIENCE_S
from tests.stores.pool import request


async def test_an_entry_says_what_is_the_matter_and_since_when(floor: Floor) -> None:
    manager = floor.manager()
    began = floor.now
    async with asyncio.TaskGroup() as group:
        waiter = group.create_task(manager.acquire(NS, "t", wait=60, task_queue="q"))
        await turns(lambda: manager.unserved(NS))
        (entry,) = manager.unserved(NS)
        assert (entry.request.task_id, entry.request.task_queue) == ("t", "q")
        assert entry.verdict.pool is PoolVerdict.NO_LIVE_POLLERS
        assert manager.unserved("other") == []
        floor.passes(3)
        agent = await floor.agent("a", task_queue="q")
        await turns(lambda: manager.unserved(NS)[0].verdict.pool is not entry.verdict.pool)
        (later,) = manager.unserved(NS)
        assert later.verdict.pool is PoolVerdict.PROVISIONING_REFUSED
        assert later.verdict.census is not None
        assert later.verdict.census.compatible == 1
        assert later.since == began
        await agent.has("W1.a")
    assert waiter.result() is not None
    assert manager.unserved(NS) == []


async def served(floor: Floor, manager: WorkerContextManager) -> None:
    async with asyncio.TaskGroup() as group:
        waiter = group.create_task(manager.try_acquire(NS, "t", wait=60))
        await turns(lambda: manager.unserved(NS))
        await floor.agent("a", "W1.a")
    assert isinstance(waiter.result(), Acquired)


async def refused(floor: Floor, manager: WorkerContextManager) -> None:
    assert isinstance(await manager.try_acquire(NS, "t", wait=0), NotAcquired)


async def cancelled(floor: Floor, manager: WorkerContextManager) -> None:
    async with asyncio.TaskGroup() as group:
        waiter = group.create_task(manager.try_acquire(NS, "t", wait=60))
        await turns(lambda: manager.unserved(NS))
        waiter.cancel()


async def failed(floor: Floor, manager: WorkerContextManager) -> None:
    async def lost(generation: int) -> None:
        raise StoreUnavailableError("away")

    floor.registry.changed_since = lost  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        await manager.try_acquire(NS, "t", wait=60)


@pytest.mark.parametrize("ends", [served, refused, cancelled, failed])
async def test_an_entry_goes_with_its_waiter_however_that_ends(
    floor: Floor, ends: Callable[[Floor, WorkerContextManager], Awaitable[None]]
) -> None:
    manager = floor.manager()
    await ends(floor, manager)
    assert manager.unserved(NS) == []


async def test_to_look_once_is_not_to_wait(floor: Floor) -> None:
    manager = floor.manager()
    assert await manager.acquire(NS, "t") is None
    assert manager.unserved(NS) == []


async def test_to_explain_takes_nothing_and_says_what_a_miss_would(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    held = await manager.try_acquire(NS, "t")
    assert isinstance(held, Acquired)
    missed = await manager.try_acquire(NS, "t")
    assert isinstance(missed, NotAcquired)
    _, verdict = await manager.explain(request("t", auto_provision=False))
    assert verdict.pool is missed.verdict.pool
    assert verdict.census == missed.verdict.census
    assert await floor.used() == 1


async def comes_to_rest(count: Callable[[], int]) -> None:
    """Let everything go on until a count stays as it is; who never waits keeps it going."""
    for _ in range(50):
        before = count()
        for _ in range(200):
            await asyncio.sleep(0)
        if count() == before:
            return
    pytest.fail("somebody looks again and again")


async def test_of_two_that_wait_for_one_slot_one_has_it_and_the_other_waits_on_without_looking(
    floor: Floor,
) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    held = await manager.acquire(NS, "first")
    assert held is not None
    looks = 0
    read = floor.registry.snapshot

    async def counted(*, now: Instant) -> Snapshot:
        nonlocal looks
        looks += 1
        return await read(now=now)

    floor.registry.snapshot = counted  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        waiters = [group.create_task(manager.acquire(NS, f"t{n}", wait=60)) for n in range(2)]
        await turns(lambda: len(manager.unserved(NS)) == 2)
        since = [one.since for one in manager.unserved(NS)]
        await held.release()
        await agent.report()
        await turns(lambda: len(manager.unserved(NS)) == 1)
        await comes_to_rest(lambda: looks)
        (left,) = manager.unserved(NS)
        assert left.since in since
        assert left.verdict.reason is Reason.CREATION_NOT_PERMITTED
        done = next(waiter for waiter in waiters if waiter.done()).result()
        assert done is not None
        await done.release()
        await agent.report()
    assert manager.unserved(NS) == []
    assert all(waiter.result() is not None for waiter in waiters)


async def test_what_is_found_of_reachability_between_the_look_and_the_wait_is_not_missed(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    lost = {ClientId("a"): Exclusion.REACHABILITY_LOST}
    await floor.registry.publish_exclusions("one", lost, now=floor.now, lease_s=60)
    manager, read = floor.manager(), floor.registry.snapshot
    looks = 0

    async def read_and_then_it_answers(*, now: Instant) -> Snapshot:
        nonlocal looks
        looks += 1
        seen = await read(now=now)
        if looks == 1:
            await floor.registry.publish_exclusions("one", {}, now=floor.now, lease_s=60)
        return seen

    floor.registry.snapshot = read_and_then_it_answers  # type: ignore[method-assign]
    async with asyncio.timeout(PATIENCE_S):
        assert await manager.acquire(NS, "t", wait=60) is not None
    assert looks == 1
