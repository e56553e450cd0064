"""The timeout releases, and does nothing else; starting and stopping it is the host's."""

import asyncio
import inspect
from typing import Any

import pytest

from farm.core.model import Instant
from farm.errors import StoreUnavailableError
from farm.manager import ContextHandle, WorkerContextManager
from farm.protocol import messages as wire
from farm.stores.memory import MemoryRegistry
from tests.manager.floor import NS, Agent, Floor
from tests.manager.test_acquiring import Plain
from tests.patience import PATIENCE_S
from tests.stores.pool import WINDOW_S

QUICK = {"task_timeout_check_interval_s": 0.001}


def is_sweeping(manager: WorkerContextManager) -> bool:
    return manager.sweeping


async def hold(manager: WorkerContextManager, task: str = "t", **asked: Any) -> ContextHandle:
    handle = await manager.acquire(NS, task, **asked)
    assert handle is not None
    return handle


async def test_nothing_runs_until_it_is_started_and_both_may_be_repeated(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager(**QUICK)
    await hold(manager)
    floor.passes(301)
    assert not is_sweeping(manager)
    assert await floor.used() == 1
    await manager.start()
    await manager.start()
    assert [t.get_name() for t in asyncio.all_tasks()].count("sweep expired") == 1
    async with asyncio.timeout(PATIENCE_S):
        while await floor.used():
            await asyncio.sleep(0.001)
    await manager.stop()
    await manager.stop()
    assert not is_sweeping(manager)
    await manager.start()
    assert is_sweeping(manager)
    await manager.stop()


def test_without_other_words_it_is_five_minutes_looked_at_every_thirty_seconds() -> None:
    given = inspect.signature(WorkerContextManager).parameters
    assert given["task_timeout_ms"].default == 300_000
    assert given["task_timeout_check_interval_s"].default == 30.0


async def test_a_timeout_of_zero_starts_no_loop_and_ends_no_assignment(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager(task_timeout_ms=0)
    await manager.start()
    assert not manager.sweeping
    await hold(manager)
    floor.passes(10 * 365 * 86_400)
    assert await manager.release_expired() == 0
    await manager.stop()


async def test_a_loop_survives_a_store_that_is_away_and_stop_says_what_else_broke_it(
    floor: Floor,
) -> None:
    class Failing(MemoryRegistry):
        errors: list[Exception] = []  # noqa: RUF012 - replaced by the test

        async def release_expired(self, *, now: Instant) -> Any:
            if self.errors:
                raise self.errors.pop(0)
            return ()

    registry = floor.registry = Failing(store_epoch=1, presence_window_s=WINDOW_S)
    registry.errors = [StoreUnavailableError("away")]
    manager = floor.manager(**QUICK)
    await manager.start()
    await turns_of(lambda: not registry.errors)
    assert manager.sweeping
    registry.errors = [ZeroDivisionError("broken")]
    await turns_of(lambda: not manager.sweeping)
    with pytest.raises(ZeroDivisionError):
        await manager.stop()


async def turns_of(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


async def _swept(floor: Floor, manager: WorkerContextManager, agent: Agent) -> None:
    kept, lost = await hold(manager, "kept"), await hold(manager, "lost")
    floor.passes(200)
    await kept.renew()
    floor.passes(99)
    assert await manager.release_expired() == 0
    floor.passes(1)
    assert await manager.release_expired() == 1
    client = await floor.client()
    assert [a.task_id for a in client.assignments.values()] == ["kept"]
    # Nothing is closed, cancelled or retried: the context stays, not clean, and its agent hears
    # that the token has ended.
    context = client.contexts[lost.assignment.context_id]
    assert not context.clean
    assert context.owner == "worker"
    assert [type(order.body) for order in agent.orders] == [wire.Release]
    assert await manager.release_expired() == 0


async def test_the_sweep_releases_what_was_not_renewed_in_time_and_does_nothing_else(
    floor: Floor,
) -> None:
    agent = await floor.agent("a", "W1.a", "W2.a")
    await _swept(floor, floor.manager(), agent)


async def test_without_the_bulk_method_it_scans_and_releases_one_by_one(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a", "W2.a")
    plain = Plain(floor.registry)
    await _swept(floor, floor.manager(context_registry=plain, connection_registry=plain), agent)


async def test_what_is_renewed_during_the_scan_is_left_alone(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    plain = Plain(floor.registry)
    manager = floor.manager(context_registry=plain, connection_registry=plain)
    handle = await hold(manager)
    floor.passes(301)
    looks = 0

    async def snapshot(*, now: Instant) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:
            await handle.renew()
        return await floor.registry.snapshot(now=now)

    plain.snapshot = snapshot  # type: ignore[attr-defined]
    assert await manager.release_expired() == 0
    assert await floor.used() == 1


async def test_past_its_time_and_not_swept_it_still_holds(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await hold(manager)
    floor.passes(301)
    client = await floor.client()
    assert client.link is not None
    await floor.registry.heard(client.client_id, client.link, now=floor.now)
    assert await manager.acquire(NS, "other") is None
    await handle.renew()
    assert await manager.release_expired() == 0


async def test_a_shorter_timeout_of_ones_own_is_swept_in_its_time(floor: Floor) -> None:
    await floor.agent("a", "W1.a", "W2.a")
    manager = floor.manager()
    await hold(manager, "short", timeout_ms=1_000)
    await hold(manager, "long")
    floor.passes(2)
    assert await manager.release_expired() == 1
    assert [a.task_id for a in (await floor.client()).assignments.values()] == ["long"]
