"""A handle reaches one context under one assignment, renews by itself, and gives back safely."""

import asyncio

import pytest

from farm.core.model import ContextId
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.manager import ContextHandle, WorkerContextManager
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.stores.memory import MemoryRegistry
from tests.manager.floor import NS, Floor
from tests.patience import PATIENCE_S
from tests.stores.pool import WINDOW_S

RUN = wire.RunPlan(plan=Plan(job_id="j", attempt_id="a", name="n", steps=()))


async def hold(manager: WorkerContextManager, timeout_ms: float | None = None) -> ContextHandle:
    handle = await manager.acquire(NS, "t", timeout_ms=timeout_ms)
    assert handle is not None
    return handle


async def test_a_handle_of_a_manager_without_an_app_node_names_what_it_lacks(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager(app_node=None))
    with pytest.raises(CollaboratorMissingError, match="app_node"):
        await handle.send("c", RUN)
    assert await handle.release()


async def test_a_handle_neither_sends_nor_renews_nor_releases_a_later_tasks_assignment(
    floor: Floor,
) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    stale = await hold(manager)
    floor.passes(301)
    await manager.release_expired()
    await agent.report()
    later = await hold(manager)
    agent.orders.clear()
    with pytest.raises(StaleAssignmentError):
        await stale.send("c", RUN)
    with pytest.raises(StaleAssignmentError):
        await stale.renew()
    assert not await stale.release()
    assert agent.orders == []
    await later.send("c", RUN)
    assert later.assignment.token > stale.assignment.token


async def test_a_handle_is_released_safely_in_every_state(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    handle = await hold(floor.manager())
    assert agent.client.link is not None
    await floor.node.detach(agent.client_id, agent.client.link)
    with pytest.raises(ClientAbsentError):
        await handle.send("c", RUN)
    await floor.registry.unlink(agent.client_id, agent.client.link, now=floor.now)
    assert await handle.release()
    assert not await handle.release()
    await floor.registry.remove(agent.client_id, epoch=agent.client.epoch)
    assert not await handle.release()


async def test_it_renews_by_itself_for_as_long_as_its_block_and_releases_at_the_end(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager(), timeout_ms=3)
    async with asyncio.timeout(PATIENCE_S), handle.renewing() as same:
        assert same is handle
        for _ in range(3):
            floor.passes(1)
            until = floor.now
            while handle.assignment.renewed_at < until:
                await asyncio.sleep(0.0005)
    assert await floor.used() == 0
    assert not [t for t in asyncio.all_tasks() if t.get_name() == "renew"]


async def test_a_block_whose_assignment_has_ended_is_cancelled_and_told_so(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager(), timeout_ms=3)
    reached = False

    async def work() -> None:
        nonlocal reached
        async with handle.renewing():
            await floor.registry.release(
                handle.assignment.client_id, ContextId("W1.a"), handle.assignment.token
            )
            await asyncio.Event().wait()
            reached = True

    with pytest.raises(StaleAssignmentError):
        await asyncio.wait_for(work(), PATIENCE_S)
    assert not reached


async def test_what_a_block_raises_comes_out_as_it_is_and_the_context_is_given_back(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager())
    with pytest.raises(ZeroDivisionError):
        async with handle.renewing():
            raise ZeroDivisionError
    assert await floor.used() == 0


async def test_a_cancelled_block_gives_the_context_back(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager())
    inside = asyncio.Event()

    async def work() -> None:
        async with handle.renewing():
            inside.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await inside.wait()
        task.cancel()
    assert task.cancelled()
    assert await floor.used() == 0


async def test_renewing_outlasts_a_store_that_is_away_for_a_while(floor: Floor) -> None:
    class Flaky(MemoryRegistry):
        failures = 2

        async def renew(self, *args: object, **options: object) -> object:  # type: ignore[override]
            if self.failures:
                self.failures -= 1
                raise StoreUnavailableError("away")
            return await super().renew(*args, **options)  # type: ignore[arg-type]

    registry = floor.registry = Flaky(store_epoch=1, presence_window_s=WINDOW_S)
    await floor.agent("a", "W1.a")
    handle = await hold(floor.manager(), timeout_ms=3)
    floor.passes(1)
    async with asyncio.timeout(PATIENCE_S), handle.renewing():
        while handle.assignment.renewed_at < floor.now:
            await asyncio.sleep(0.0005)
    assert registry.failures == 0
