"""A slot is taken before its context, and is given back on every path."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from farm.core.model import Assignment, Capacity, ClientId, Request, TaskId
from farm.core.reservation import Denial
from farm.core.tiers import Pinned, Prefer
from farm.errors import CollaboratorMissingError, StoreUnavailableError
from farm.manager import ContextHandle, SlotReservation, WorkerContextManager
from tests.manager.floor import NS, Floor, turns
from tests.manager.test_tiers import Placed


def asks(task: str = "task", **changes: Any) -> Request:
    return Request(namespace=NS, task_id=TaskId(task), **changes)


def slots(count: int) -> Capacity:
    return Capacity(max_concurrency=count, max_windows=9)


async def reserved(manager: WorkerContextManager, **changes: Any) -> SlotReservation:
    found = await manager.slots.select_and_reserve(asks(**changes))
    assert found is not None
    return found


async def test_a_fan_that_exactly_fits_its_pool_is_all_placed_at_once(floor: Floor) -> None:
    await floor.agent("a", "W1.a", "W2.a", "W3.a", "W4.a", capacity=slots(4))
    await floor.agent("b", "W1.a", capacity=slots(1))
    await floor.agent("c", "W1.a", "W2.a", "W3.a", capacity=slots(3))
    manager = floor.manager()

    async def place(task: str) -> ContextHandle:
        async with await reserved(manager, task=task) as slot:
            await asyncio.sleep(0)
            handle = await slot.commit()
            assert handle is not None
            return handle

    async with asyncio.TaskGroup() as group:
        placed = [group.create_task(place(f"t{n}")) for n in range(8)]
    held = [task.result().assignment for task in placed]
    assert len({(one.client_id, one.context_id) for one in held}) == 8
    assert {one.task_id for one in held} == {f"t{n}" for n in range(8)}
    assert await floor.used() == 8
    assert await manager.slots.select_and_reserve(asks("one too many")) is None
    for task in placed:
        assert await task.result().release()
    assert await floor.used() == 0


class LeftError(Exception):
    """Somebody leaves the block."""


async def leaves(slot: SlotReservation) -> None:
    async with slot:
        raise LeftError


async def ends(slot: SlotReservation) -> None:
    async with slot:
        pass


async def releases(slot: SlotReservation) -> None:
    async with slot:
        await slot.release()
        await slot.release()


async def finds_the_context_taken(slot: SlotReservation) -> None:
    async with slot:
        assert await slot.commit("nowhere") is None


async def runs_out_of_time(slot: SlotReservation) -> None:
    async with asyncio.timeout(0):
        async with slot:
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    "leave", [leaves, ends, releases, finds_the_context_taken, runs_out_of_time]
)
async def test_a_slot_that_was_not_handed_over_is_given_back_however_its_block_is_left(
    floor: Floor, leave: Callable[[SlotReservation], Awaitable[None]]
) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    slot = await reserved(floor.manager())
    assert await floor.used() == 1
    before = floor.registry.generation()
    with contextlib.suppress(LeftError, TimeoutError):
        await leave(slot)
    assert await floor.used() == 0
    assert floor.registry.generation() > before
    await slot.release()
    assert await floor.used() == 0


async def test_who_is_cancelled_between_the_slot_and_its_context_leaves_no_slot_taken(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    manager, inside = floor.manager(), asyncio.Event()

    async def work() -> None:
        async with await reserved(manager):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    assert await floor.used() == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await floor.used() == 0


async def test_who_is_cancelled_while_a_slot_is_asked_for_leaves_none_taken(floor: Floor) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    manager = floor.manager()
    for rounds in range(6):
        task = asyncio.create_task(reserved(manager))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await task).release()
        assert await floor.used() == 0


async def test_who_is_cancelled_after_the_store_has_handed_over_leaves_nothing_held(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    slot, commit, said = await reserved(floor.manager()), floor.registry.commit, asyncio.Event()

    async def unheard(*args: Any, **how: Any) -> Assignment | Denial:
        await commit(*args, **how)
        said.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(floor.registry, "commit", unheard)
    task = asyncio.create_task(slot.commit())
    await said.wait()
    assert (await floor.client()).assignments
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await floor.used() == 0


async def test_a_slot_that_cant_be_given_back_now_comes_back_by_time(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise StoreUnavailableError("the store is away")

    await floor.agent("a", "W1.a", capacity=slots(1))
    async with await reserved(floor.manager()):
        monkeypatch.setattr(floor.registry, "cancel", away)
    assert await floor.used() == 1
    floor.passes(1_000)
    await floor.registry.release_expired(now=floor.now)
    assert await floor.used() == 0


async def test_a_task_that_has_the_context_already_gives_its_slot_back(floor: Floor) -> None:
    await floor.agent("a", "W1.a", "W2.a", capacity=slots(2))
    manager = floor.manager()
    first = await manager.acquire(NS, "task")
    assert first is not None
    async with await reserved(manager) as slot:
        assert await floor.used() == 2
        again = await slot.commit(first.assignment.context_id)
        assert again is not None
        assert again.assignment.token == first.assignment.token
        assert await floor.used() == 1
    assert await floor.used() == 1


async def test_an_agent_that_has_left_is_given_nothing_back(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    async with await reserved(floor.manager()) as slot:
        await floor.registry.remove(ClientId("a"), epoch=1)
        assert await slot.commit() is None
    assert await floor.used() == 0
    await floor.agent("a", "W1.a")
    await slot.release()
    assert await floor.used() == 0


async def test_a_slot_of_one_agent_is_had_by_walking_the_list(floor: Floor) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    await floor.agent("b", "W1.a", capacity=slots(1))
    manager = floor.manager()
    async with await reserved(manager) as first:
        assert first.client_id == "a"
        had = [
            slot.client_id
            for client_id in await manager.slots.workers_for(asks())
            if (slot := await manager.slots.reserve_worker(asks(), client_id)) is not None
        ]
        assert had == ["b"]


async def test_slots_are_taken_tier_by_tier_where_the_namespace_is_placed(floor: Floor) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", None)):
        await floor.agent(name, "W1.a", node=node, capacity=slots(1))
    prefers = floor.manager(placements=Placed(Prefer(labels=frozenset({"n2"}))))
    found = await prefers.slots.workers_for(asks())
    assert found[0] == "b"
    assert set(found) == {"a", "b", "c"}
    pinned = floor.manager(placements=Placed(Pinned(labels=frozenset({"n2"}))))
    assert await pinned.slots.workers_for(asks()) == ("b",)
    assert (await reserved(prefers)).client_id == "b"
    assert await pinned.slots.select_and_reserve(asks()) is None
    assert await pinned.slots.reserve_worker(asks(), ClientId("a")) is None
    assert (await reserved(prefers)).client_id in {"a", "c"}
    unknown = floor.manager(placements=Placed())
    assert await unknown.slots.select_and_reserve(asks()) is None


async def test_a_registry_that_reserves_no_slots_is_named(floor: Floor) -> None:
    class Bare:
        """Anything that is no such registry."""

    registry: Any = Bare()
    manager = floor.manager(context_registry=registry, connection_registry=registry)
    with pytest.raises(CollaboratorMissingError, match="select_and_reserve"):
        await manager.slots.select_and_reserve(asks())


async def test_a_slot_that_is_given_back_wakes_who_waits(floor: Floor) -> None:
    await floor.agent("a", "W1.a", capacity=slots(1))
    manager = floor.manager()
    async with asyncio.TaskGroup() as group:
        async with await reserved(manager):
            waiter = group.create_task(manager.acquire(NS, "waits", wait=60))
            await turns(lambda: manager.misses(NS))
        handle = await waiter
        assert handle is not None
