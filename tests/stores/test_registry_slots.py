"""Slots: whose turn it is, how many there are, and that each is taken and given back once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ContextId,
    LinkId,
    Namespace,
    TaskId,
)
from farm.core.pools import Exclusion
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need
from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry
from tests.stores.pool import (
    LINK,
    RESERVED_S,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    Everything,
    at,
    hello,
    only,
    registered,
    reported,
    request,
)

B = ClientId("b")


async def agent(registry: Everything, name: str, *tabs: str, slots: int = 9, **told: Any) -> Client:
    """Let in an agent with so many slots."""
    told = {"capacity": Capacity(max_concurrency=slots, max_windows=9)} | told
    client = await registered(registry, hello(name, **told), epoch=name)
    if tabs:
        await reported(registry, *tabs, client=client)
    return client


async def slot(registry: Everything, **asks: Any) -> Reservation:
    found = await registry.select_and_reserve(request(**asks), now=T0)
    assert found is not None
    return found


async def turn(registry: Everything, **asks: Any) -> str | None:
    """Take a slot, and give it back; return whose it was."""
    found = await registry.select_and_reserve(request(**asks), now=T0)
    if found is None:
        return None
    await registry.cancel(found)
    return found.site.client_id


async def look(registry: Everything, **asks: Any) -> Sequence[str]:
    return await registry.workers_for(request(**asks), now=T0)


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


# Whose turn it is


async def test_in_as_many_turns_as_there_are_agents_each_has_one_in_order_of_id(
    registry: Everything,
) -> None:
    for name in ("c", "a", "b"):
        await agent(registry, name)
    assert [await turn(registry) for _ in range(6)] == ["a", "b", "c"] * 2
    held = [await slot(registry) for _ in range(9)]
    assert [one.site.client_id for one in held] == ["a", "b", "c"] * 3


async def test_turns_go_round_however_many_there_are_and_pass_over_who_is_full(
    registry: Everything,
) -> None:
    names = [f"a{n:02}" for n in range(70)]
    for name in names:
        await agent(registry, name, slots=2 if name < "a40" else 1)
    assert [await turn(registry) for _ in range(72)] == [*names, *names[:2]]
    held = [(await slot(registry)).site.client_id for _ in range(110)]
    assert held == [*names[2:], *names[:40], *names[:2]]
    assert await turn(registry) is None


async def test_each_pool_and_kind_of_work_takes_turns_of_its_own(registry: Everything) -> None:
    other = Namespace("other")
    both: dict[str, Any] = {"namespaces": (Namespace("default"), other)}
    both["activity_types"] = frozenset("xy")
    for name in ("a", "b"):
        await agent(registry, name, **both)
    for name in ("c", "d"):
        await agent(registry, name, task_queue="crawl")
    assert await turn(registry) == "a"
    assert await turn(registry, namespace=other) == "a"
    assert await turn(registry, activity_type="x") == "a"
    assert await turn(registry, activity_type="y") == "a"
    assert await turn(registry, task_queue="crawl") == "c"
    assert await turn(registry) == "b"
    assert await turn(registry, task_queue="crawl") == "d"


async def test_who_is_pinned_and_who_is_not_take_turns_together(registry: Everything) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        await agent(registry, name, node=node)
    assert await turn(registry) == "a"
    assert await turn(registry, node="n2") == "b"
    assert await turn(registry) == "c"
    assert await turn(registry, node="n2") == "b"


async def test_whoever_would_do_is_found_behind_however_many_who_would_not(
    registry: Everything,
) -> None:
    for n in range(70):
        await agent(registry, f"a-{n:02}")
    await agent(registry, "b", node="n")
    assert await turn(registry, node="n") == "b"
    assert await turn(registry) == "a-00"


async def test_of_many_who_do_not_meet_a_requirement_the_few_who_do_take_turns(
    registry: Everything,
) -> None:
    for n in range(40):
        await agent(registry, f"no-{n:02}", metadata={"gpu": False})
    for name in ("c", "zz", "no-20b"):
        await agent(registry, name, metadata={"gpu": True})
    await agent(registry, "elsewhere", metadata={"gpu": True}, task_queue="crawl")
    wanted = {"requirements": {"gpu": True}}
    assert [await turn(registry, **wanted) for _ in range(4)] == ["c", "no-20b", "zz", "c"]
    assert await turn(registry) == "no-00"  # one cursor for all of a pool
    assert await turn(registry, **wanted) == "no-20b"
    full = [await slot(registry, **wanted) for _ in range(3 * 9)]
    assert await turn(registry, **wanted) is None
    for one in full:
        await registry.cancel(one)
    assert await turn(registry, **wanted) is not None


async def test_who_finds_nobody_moves_no_cursor(registry: Everything) -> None:
    assert await turn(registry) is None
    assert await look(registry) == ()
    await agent(registry, "a", slots=1)
    assert await turn(registry, node="n") is None
    await agent(registry, "b", slots=1)
    assert await turn(registry) == "a"
    for wrong in ({"node": "n"}, {"requirements": {"k": 1}}, {"through": "x"}):
        assert await turn(registry, **wrong) is None
        assert await look(registry, **wrong) == ()
    assert await turn(registry) == "b"
    held = [await slot(registry), await slot(registry)]
    assert [one.site.client_id for one in held] == ["a", "b"]
    assert await turn(registry) is None
    for one in held:
        await registry.cancel(one)
    assert await turn(registry) == "a"


async def test_diagnostics_move_no_cursor(registry: Everything) -> None:
    for name in ("a", "b"):
        await agent(registry, name, "T1")
    assert await turn(registry) == "a"
    await registry.snapshot(now=T0)
    assert isinstance(await registry.reserve_worker(request(), A, now=T0), Reservation)
    await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S)
    assert await turn(registry) == "b"


async def test_the_last_agent_to_leave_takes_the_turns_of_its_pool_with_it(
    registry: Everything,
) -> None:
    for name in ("a", "b"):
        await agent(registry, name)
    assert await turn(registry) == "a"
    await registry.remove(A, epoch=1)
    await agent(registry, "a")
    assert await turn(registry) == "b"
    assert await turn(registry) == "a"
    for name in ("a", "b"):
        known = await only(registry, ClientId(name))
        await registry.remove(known.client_id, epoch=known.epoch)
    for name in ("a", "b"):
        await agent(registry, name)
    assert await turn(registry) == "a"


NAMESPACES = tuple(Namespace(f"n{n}") for n in range(100))
KINDS = frozenset(f"k{n}" for n in range(99))


async def serve_ten_thousand_pools(registry: Everything, pools: int) -> None:
    """Let an agent in that is in 10,000 pools, ask in some of them, and let it go."""
    client = await agent(registry, "a", namespaces=NAMESPACES, activity_types=KINDS)
    keys = [(namespace, kind) for namespace in NAMESPACES for kind in (None, *sorted(KINDS))]
    assert len(keys) == 10_000
    for namespace, kind in keys[:: len(keys) // pools]:
        assert await turn(registry, namespace=namespace, activity_type=kind) == "a"
        asked = await look(registry, namespace=namespace, task_queue="x" * pools, node=f"{kind}")
        assert asked == ()
    await registry.remove(A, epoch=client.epoch)


async def test_in_memory_ten_thousand_pools_leave_nothing_behind() -> None:
    registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)
    await serve_ten_thousand_pools(registry, 10_000)
    pools = registry._ready.pools
    assert [getattr(pools, name) for name in ("_of", "_members", "_free", "_open", "_last")] == [
        {},
        {},
        {},
        set(),
        {},
    ]


async def test_in_redis_ten_thousand_pools_leave_nothing_behind(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> None:
    registry = await new_redis_registry(1)
    client = await agent(registry, "a", "T1")
    await registry.remove(A, epoch=client.epoch)
    before = {name async for name in registry.redis.scan_iter(f"{registry.tag}:*", count=1000)}
    await serve_ten_thousand_pools(registry, 500)
    after = {name async for name in registry.redis.scan_iter(f"{registry.tag}:*", count=1000)}
    assert after == before


async def test_an_agent_that_goes_to_another_queue_leaves_the_turns_of_its_own(
    registry: Everything,
) -> None:
    await agent(registry, "a")
    assert await turn(registry) == "a"
    await agent(registry, "a", link="link-2", task_queue="crawl")
    await agent(registry, "b")
    await agent(registry, "0")
    assert await turn(registry) == "0"
    assert await turn(registry, task_queue="crawl") == "a"


async def test_who_takes_nothing_is_passed_over_and_the_others_keep_their_order(
    registry: Everything,
) -> None:
    for name in "abcd":
        await agent(registry, name)
    assert await turn(registry) == "a"
    lost = {B: Exclusion.REACHABILITY_LOST}
    await registry.publish_exclusions("one", lost, now=T0, lease_s=60)
    assert set(await look(registry, node="nowhere")) == set()
    assert [await turn(registry) for _ in range(3)] == ["c", "d", "a"]
    assert await look(registry) == ("c", "d", "a")
    await registry.publish_exclusions("one", {}, now=T0, lease_s=60)
    assert [await turn(registry) for _ in range(4)] == ["d", "a", "b", "c"]


async def test_who_is_full_is_passed_over_and_the_others_keep_their_order(
    registry: Everything,
) -> None:
    await agent(registry, "a")
    await agent(registry, "b", slots=1)
    await agent(registry, "c")
    assert isinstance(await registry.reserve_worker(request(), B, now=T0), Reservation)
    assert [await turn(registry) for _ in range(3)] == ["a", "c", "a"]


async def test_the_list_and_the_reservation_follow_one_sequence(registry: Everything) -> None:
    for name in "abc":
        await agent(registry, name)
    assert await look(registry) == ("a", "b", "c")
    assert await turn(registry) == "b"
    assert await look(registry) == ("c", "a", "b")
    assert await look(registry) == ("a", "b", "c")
    assert [await turn(registry) for _ in range(3)] == ["b", "c", "a"]


async def test_the_list_has_all_who_would_do_full_or_not(registry: Everything) -> None:
    await agent(registry, "a", slots=1)
    await agent(registry, "b", capacity=Capacity())
    await agent(registry, "c", node="n")
    await agent(registry, "d", task_queue="crawl")
    await slot(registry)
    assert set(await look(registry)) == {"a", "b", "c"}
    assert await look(registry, node="n") == ("c",)


async def test_who_has_fallen_silent_is_in_no_turn_until_it_is_heard(registry: Everything) -> None:
    await agent(registry, "a")
    late = at(WINDOW_S + 1)
    assert await registry.select_and_reserve(request(), now=late) is None
    assert await registry.workers_for(request(), now=late) == ()
    assert await registry.heard(A, LINK, now=late)
    found = await registry.select_and_reserve(request(), now=late)
    assert found is not None
    assert await registry.workers_for(request(), now=late) == ("a",)


async def test_of_hundreds_who_would_not_do_the_one_who_does_is_found(registry: Everything) -> None:
    for n in range(100):
        await agent(registry, f"no-{n:03}", metadata={"k": 1})
    await agent(registry, "no-050x", metadata={"k": 2})
    for _ in range(3):
        assert await turn(registry, requirements={"k": 2}) == "no-050x"
        assert await turn(registry) == "no-051"


# How many there are


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


# What is announced


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
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
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


# A choice does not grow with what there is


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
