"""What is taken of an agent before it is said for what, and what becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from farm.core.model import Assignment, Capacity, ClientId, ContextId, LinkId, TaskId
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need
from farm.stores.redis import RedisRegistry
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    NS,
    RESERVED_S,
    T0,
    TIMEOUT_S,
    A,
    B,
    Everything,
    at,
    hello,
    only,
    registered,
    reported,
    request,
)
from tests.stores.slots import agent, slot, turn


async def commit(
    registry: Everything, tab: str, reservation: Reservation | None, task: str = "task"
) -> Assignment | Denial:
    return await registry.commit(
        request(task),
        A if reservation is None else reservation.site.client_id,
        ContextId(tab),
        reservation=reservation,
        now=T0,
        timeout_s=TIMEOUT_S,
    )


async def used(registry: Everything, client_id: ClientId = A) -> int:
    return (await only(registry, client_id)).used_slots()


@pytest.mark.parametrize("many", [10, 50])
async def test_of_many_who_ask_one_agent_as_many_win_as_it_has_slots(
    registry: Everything, many: int
) -> None:
    await agent(registry, "a", slots=4)
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(registry.select_and_reserve(request(f"t{n}"), now=T0))
            for n in range(many)
        ]
    won = [task.result() for task in asked if task.result() is not None]
    assert len(won) == 4
    assert await used(registry) == 4
    assert (await only(registry)).reserved_slots == 4


async def test_a_fan_as_large_as_the_pool_is_all_placed(registry: Everything) -> None:
    tabs = {"a": ("T1", "T2", "T3", "T4"), "b": ("T1",), "c": ("T1", "T2", "T3")}
    for name, its in tabs.items():
        await agent(registry, name, *its, slots=len(its))

    async def place(task: str) -> Assignment:
        reservation = await slot(registry, task_id=TaskId(task))
        its = tabs[reservation.site.client_id]
        for tab in its:
            found = await commit(registry, tab, reservation, task)
            if isinstance(found, Assignment):
                return found
            assert found is Denial.TAKEN
        raise AssertionError("a slot and no context")

    async with asyncio.TaskGroup() as group:
        placed = [group.create_task(place(f"t{n}")) for n in range(8)]
    assert len({(p.result().client_id, p.result().context_id) for p in placed}) == 8
    assert await turn(registry) is None
    assert [await used(registry, ClientId(name)) for name in tabs] == [4, 1, 3]


@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
async def test_one_task_on_one_context_takes_one_slot_reserved_or_not_and_said_twice_or_not(
    registry: Everything, reserved: bool, tracked: bool
) -> None:
    await agent(registry, "a", "T1", "T2")
    before = await commit(registry, "T1", None) if tracked else None
    reservation = await slot(registry) if reserved else None
    assert await used(registry) == tracked + reserved
    found = await commit(registry, "T1", reservation)
    assert isinstance(found, Assignment)
    assert await used(registry) == 1
    assert (await only(registry)).reserved_slots == 0
    assert before in (None, found)
    assert await commit(registry, "T1", reservation) == found
    assert await used(registry) == 1
    assert await registry.release(A, found.context_id, found.token)
    assert await used(registry) == 0


async def test_a_context_of_another_task_is_not_handed_over_and_the_slot_stays_reserved(
    registry: Everything,
) -> None:
    await agent(registry, "a", "T1", "T2", slots=2)
    assert isinstance(await commit(registry, "T1", None, "first"), Assignment)
    reservation = await slot(registry)
    assert await commit(registry, "T1", reservation) is Denial.TAKEN
    assert await commit(registry, "T9", reservation) is Denial.GONE
    assert await commit(registry, "T2", None) is Denial.FULL
    assert await used(registry) == 2
    assert isinstance(await commit(registry, "T2", reservation), Assignment)
    assert await used(registry) == 2


async def test_a_slot_that_was_given_back_makes_no_assignment(registry: Everything) -> None:
    await agent(registry, "a", "T1")
    reservation = await slot(registry)
    await registry.cancel(reservation)
    await registry.cancel(reservation)
    assert await used(registry) == 0
    assert await commit(registry, "T1", reservation) is Denial.GONE
    assert await used(registry) == 0


async def test_a_slot_is_given_back_to_nobody_once_its_agent_has_left(registry: Everything) -> None:
    client = await agent(registry, "a", "T1")
    reservation = await slot(registry)
    await registry.remove(A, epoch=client.epoch)
    await registry.cancel(reservation)
    assert await commit(registry, "T1", reservation) is Denial.GONE
    await agent(registry, "a", "T1")
    await registry.cancel(reservation)
    assert await used(registry) == 0


async def test_a_slot_ends_with_the_life_of_the_browser_it_was_taken_in(
    registry: Everything,
) -> None:
    await agent(registry, "a", "T1")
    reservation = await slot(registry)
    await registered(registry, hello("a", link="link-2"), epoch="another")
    assert await used(registry) == 0
    await registry.cancel(reservation)
    assert await used(registry) == 0


async def test_what_a_coordinator_that_died_has_reserved_comes_back_by_time(
    registry: Everything,
) -> None:
    await agent(registry, "a", slots=1)
    await slot(registry)
    await registry.release_expired(now=at(RESERVED_S - 1))
    assert await used(registry) == 1
    await registry.release_expired(now=at(RESERVED_S))
    assert await used(registry) == 0


async def test_a_slot_of_one_agent_is_had_by_its_id_or_it_is_said_why_not(
    registry: Everything,
) -> None:
    await agent(registry, "a", slots=1)
    outcomes = [await registry.reserve_worker(request(), A, now=T0) for _ in range(2)]
    assert isinstance(outcomes[0], Reservation)
    assert outcomes[0].site.need is Need.SLOT
    assert outcomes[1] is Denial.FULL
    wrong = request(node="n")
    assert await registry.reserve_worker(wrong, A, now=T0) is Denial.NOT_READY
    assert await registry.reserve_worker(request(), B, now=T0) is Denial.GONE


async def announced(registry: Everything, slots: int, link: LinkId = LINK) -> bool:
    return await registry.set_advertised_capacity(A, link, slots)


async def test_who_has_announced_nothing_is_not_chosen_and_to_announce_wakes_who_waits(
    registry: Everything,
) -> None:
    await agent(registry, "a", "T1", capacity=Capacity())
    assert await turn(registry) is None
    assert await registry.reserve_worker(request(), A, now=T0) is Denial.NOT_READY
    assert await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S) is None

    async def wait() -> Reservation:
        while True:
            generation = registry.generation()
            found = await registry.select_and_reserve(request(), now=T0)
            if found is not None:
                return found
            looked.set()
            await registry.changed_since(generation)

    looked = asyncio.Event()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        waiter = group.create_task(wait())
        await looked.wait()
        assert await announced(registry, 1)
    assert waiter.result().site.client_id == "a"


async def test_to_announce_for_who_has_left_or_on_an_old_link_is_nothing(
    registry: Everything,
) -> None:
    assert not await announced(registry, 3)
    client = await agent(registry, "a", slots=1)
    assert not await announced(registry, 3, LinkId("link-0"))
    await registry.unlink(A, LINK, now=T0)
    assert not await announced(registry, 3)
    assert (await only(registry)).capacity.max_concurrency == 1
    await registry.remove(A, epoch=client.epoch)
    assert not await announced(registry, 3)
    assert (await registry.snapshot(now=T0)).clients == ()


async def test_whatever_gives_a_slot_back_or_lets_an_agent_go_wakes(registry: Everything) -> None:
    client = await agent(registry, "a", "T1", "T2", slots=3)

    async def wakes(change: Awaitable[object]) -> bool:
        before = registry.generation()
        await change
        return registry.generation() > before

    await commit(registry, "T1", None)
    assert await wakes(commit(registry, "T1", await slot(registry)))  # it has the context already
    assert await wakes(registry.release_client(NS, A, link=None))
    await commit(registry, "T2", None)
    assert await wakes(registry.release_expired(now=at(2 * TIMEOUT_S)))
    opened = await registry.reserve_window(A, identity=None, now=T0)
    assert isinstance(opened, Reservation)
    await reported(registry, "T1", "T2", "T3", client=client, number=2)
    # What was being opened counted twice, once it was reported.
    assert await wakes(
        registry.settle(request("new"), opened, ContextId("T3"), now=T0, timeout_s=TIMEOUT_S)
    )
    assert await wakes(registry.set_draining(A))
    assert await wakes(registry.fence(A, by="anna", now=T0))
    assert await wakes(registry.remove(A, epoch=client.epoch))


async def test_fewer_slots_than_are_taken_stop_new_work_and_end_nothing(
    registry: Everything,
) -> None:
    await agent(registry, "a", "T1", "T2", "T3", slots=3)
    held = [await commit(registry, tab, None, tab) for tab in ("T1", "T2")]
    reservation = await slot(registry)
    assert await announced(registry, 1)
    for one in held:
        assert isinstance(one, Assignment)
        assert await registry.holds(A, one.context_id, one.token)
    assert await used(registry) == 3
    assert await turn(registry) is None
    assert await commit(registry, "T3", None) is Denial.FULL
    assert await registry.reserve_worker(request(), A, now=T0) is Denial.FULL
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.FULL
    await registry.cancel(reservation)
    for one in held:
        assert await turn(registry) is None
        assert isinstance(one, Assignment)
        assert await registry.release(A, one.context_id, one.token)
    assert await turn(registry) == "a"


@pytest.mark.parametrize("slots", [0, -1])
async def test_no_slots_are_no_announcement(registry: Everything, slots: int) -> None:
    await agent(registry, "a", slots=2)
    with pytest.raises(ValueError, match=f"max_concurrency is at least 1, not {slots}"):
        await announced(registry, slots)
    assert (await only(registry)).capacity.max_concurrency == 2


async def test_what_is_given_back_wakes_who_waits_and_what_is_taken_does_not(
    registry: Everything,
) -> None:
    await agent(registry, "a", "T1")
    before = registry.generation()
    reservation = await slot(registry)
    await registry.workers_for(request(), now=T0)
    assert registry.generation() == before
    await registry.cancel(reservation)
    after = registry.generation()
    assert after > before
    await commit(registry, "T1", await slot(registry))
    assert registry.generation() == after


async def test_over_redis_a_choice_is_one_script_that_asks_as_much_of_many_as_of_few(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> None:
    asked = []
    for agents in (6, 60):
        registry = await new_redis_registry(1)
        for n in range(agents):
            await agent(registry, f"agent-{n:02}", slots=1)
        for n in range(agents // 2):  # half of them are full, and it would be their turn
            await registry.reserve_worker(request(), ClientId(f"agent-{n:02}"), now=T0)
        await registry.redis.config_resetstat()
        await slot(registry)
        calls = await registry.redis.info("commandstats")
        assert calls["cmdstat_evalsha"]["calls"] == 1
        asked.append({name: one["calls"] for name, one in calls.items() if "config" not in name})
    assert asked[0] == asked[1]
