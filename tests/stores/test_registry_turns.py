"""Whose turn it is among the agents of a pool."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from farm.core.model import Capacity, ClientId, Namespace
from farm.core.pools import Exclusion
from farm.core.reservation import Reservation
from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry
from tests.stores.pool import LINK, T0, TIMEOUT_S, WINDOW_S, A, B, Everything, at, only, request
from tests.stores.slots import agent, slot, turn


async def look(registry: Everything, **asks: Any) -> Sequence[str]:
    return await registry.workers_for(request(**asks), now=T0)


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
