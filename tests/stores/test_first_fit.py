"""What will do is found and taken in one step, however much there is that will not."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ClientType,
    Context,
    ContextId,
    LinkId,
    Namespace,
    Snapshot,
    WindowId,
)
from farm.core.placement import BrowserPlacement, Fill, Mode
from farm.manager import WorkerContextManager
from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry
from tests.stores.pool import (
    LINK,
    NS,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    B,
    at,
    hello,
    in_window,
    registered,
    reported,
    request,
)

SHARED = BrowserPlacement(mode=Mode.REUSE_ONLY)
ROOM = Capacity(max_concurrency=4, max_windows=9)


async def agent(registry: Any, name: str, *tabs: str | Context, **changes: Any) -> None:
    client = await registered(registry, hello(name, **({"capacity": ROOM} | changes)), epoch=name)
    await reported(registry, *tabs, client=client)


async def taken(registry: Any, seconds: float = 0, **changes: Any) -> str | None:
    """Take what is at hand; return the name of client and context."""
    found = await registry.assign_first(request(**changes), now=at(seconds), timeout_s=TIMEOUT_S)
    if found is None:
        return None
    assert isinstance(found, Assignment)
    assert await registry.holds(found.client_id, found.context_id, found.token)
    return f"{found.client_id}/{found.context_id}"


async def test_the_affinity_clients_come_first_and_then_others(registry: Any) -> None:
    await agent(registry, "a", "T1")
    await agent(registry, "b", "T1")
    found = [await taken(registry, affinity_client_id=B) for _ in range(3)]
    assert found == ["b/T1", "a/T1", None]
    assert await taken(registry, affinity_client_id=ClientId("nobody")) is None


@pytest.mark.parametrize("requirements", [{}, {"k": 1}], ids=str)
@pytest.mark.parametrize("near", ["a", "b"])
@pytest.mark.parametrize("fill", Fill)
async def test_the_emptiest_or_the_fullest_client_is_filled(
    registry: Any, fill: Fill, near: str, requirements: dict[str, int]
) -> None:
    room = Capacity(max_concurrency=2)
    for name in "ab":
        await agent(registry, name, "T1", "T2", capacity=room, metadata={"k": 1})
    asked: dict[str, Any] = {"placement": replace(SHARED, fill=fill), "requirements": requirements}
    first = await taken(registry, affinity_client_id=ClientId(near), **asked)
    found = [first, *[await taken(registry, **asked) for _ in range(3)]]
    assert set(found) == {"a/T1", "a/T2", "b/T1", "b/T2"}
    assert first == f"{near}/T1"
    assert (found[1] == f"{near}/T2") is (fill is Fill.PACK)
    assert await taken(registry, **asked) is None


async def test_what_is_asked_for_is_what_is_had(registry: Any) -> None:
    other = Namespace("other")
    await agent(registry, "a", "T1", namespaces=(NS, NS), metadata={"k": 1, "l": [1]})
    await agent(registry, "b", "T1", client_type=ClientType.CONSOLE, namespaces=(NS, other))
    assert await taken(registry, namespace=Namespace("third")) is None
    assert await taken(registry, client_type=ClientType.MOBILE) is None
    assert await taken(registry, requirements={"k": 1.0}) is None
    assert await taken(registry, requirements={"k": 1, "l": [2]}) is None
    assert await taken(registry, identity="default/shop") is None
    assert await taken(registry, profile="wide") is None
    assert await taken(registry, requirements={"k": 1, "l": [1]}) == "a/T1"
    assert await taken(registry, namespace=other) == "b/T1"


async def test_who_takes_nothing_is_passed_over_until_that_has_changed(registry: Any) -> None:
    await agent(registry, "a", "T1")
    await registry.unlink(A, LINK, now=T0)
    assert await taken(registry) is None
    client = await registered(registry, hello(link="link-2", capacity=ROOM), epoch="a")
    assert client.epoch == 1
    assert await taken(registry, WINDOW_S + 1) is None
    assert await registry.heard(A, LinkId("link-2"), now=at(WINDOW_S + 1))
    await registry.set_draining(A)
    assert await taken(registry, WINDOW_S + 1) is None
    await registered(registry, hello(link="link-3"), epoch="a", now=at(WINDOW_S + 1))
    assert await taken(registry, 3 * WINDOW_S) is None
    assert await registry.heard(A, LinkId("link-3"), now=at(3 * WINDOW_S))
    assert await taken(registry, 3 * WINDOW_S) == "a/T1"


async def test_who_is_linked_elsewhere_is_passed_over(registry: Any) -> None:
    await agent(registry, "a", "T1")
    client = await registered(registry, hello(link="two/2", capacity=ROOM), epoch="a")
    assert client.epoch == 1
    assert await taken(registry, through="one") is None
    assert await taken(registry, through="two") == "a/T1"


async def test_a_slot_is_at_hand_again_once_it_is_given_back(registry: Any) -> None:
    await agent(registry, "a", "T1", "T2", capacity=replace(ROOM, max_concurrency=1))
    one = await registry.reserve_window(A, identity=None, now=T0)
    assert await taken(registry) is None
    await registry.cancel(one)
    held = await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S)
    assert held is not None
    assert await taken(registry) is None
    assert await registry.release_expired(now=at(TIMEOUT_S)) == (held,)
    assert await taken(registry) == "a/T2"


async def test_what_is_held_dirty_restored_or_gone_is_not_at_hand(registry: Any) -> None:
    client = await registered(registry, hello(capacity=ROOM))
    busy = in_window("T2", clean=False)
    await reported(registry, "T1", busy, client=client)
    held = await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S)
    assert held is not None
    assert await taken(registry) is None
    await reported(registry, "T1", busy, client=client, number=2)
    assert await taken(registry) is None
    await registry.release(A, ContextId("T1"), held.token)
    assert await taken(registry) is None
    await reported(registry, "T1", busy, client=client, number=3)
    assert await registry.restore(held)
    assert await taken(registry) is None
    await reported(registry, "T3", client=client, number=4)
    assert await taken(registry) == "a/T3"
    await registry.remove(A, epoch=1)
    assert await taken(registry) is None


async def test_a_life_of_the_browser_that_is_over_lends_nothing(registry: Any) -> None:
    await agent(registry, "a", "T1", metadata={"k": 1})
    await registered(registry, hello(link="link-2", metadata={"k": 2}), epoch="another")
    assert await taken(registry, requirements={"k": 2}) is None
    assert await taken(registry) is None


@pytest.mark.parametrize("fill", Fill)
async def test_of_many_who_do_not_meet_a_requirement_the_few_who_do_are_found(
    registry: Any, fill: Fill
) -> None:
    for n in range(40):
        await agent(registry, f"no-{n:02}", "T1", metadata={"gpu": False})
    for n in range(5):
        await agent(registry, f"yes-{n}", "T1", metadata={"gpu": True})
    asked: dict[str, Any] = {"requirements": {"gpu": True}, "placement": replace(SHARED, fill=fill)}
    found = [await taken(registry, **asked) for _ in range(6)]
    assert {*found} == {*(f"yes-{n}/T1" for n in range(5)), None}


async def unlinked(registry: Any, name: str) -> None:
    await agent(registry, name, "T1")
    await registry.unlink(ClientId(name), LINK, now=T0)


async def draining(registry: Any, name: str) -> None:
    await agent(registry, name, "T1")
    await registry.set_draining(ClientId(name))


async def unannounced(registry: Any, name: str) -> None:
    await agent(registry, name, "T1", capacity=replace(ROOM, max_concurrency=None))


async def busy(registry: Any, name: str) -> None:
    await agent(registry, name, in_window("T1", clean=False))


async def lent(registry: Any, name: str) -> None:
    await agent(registry, name, "T1")
    assert await taken(registry, affinity_client_id=ClientId(name)) == f"{name}/T1"
    await registry.reserve_window(ClientId(name), identity=None, now=T0)


async def full_of_assignments(registry: Any, name: str) -> None:
    await agent(registry, name, "T1", "T2", capacity=replace(ROOM, max_concurrency=1))
    assert await taken(registry, affinity_client_id=ClientId(name)) == f"{name}/T1"


async def full_of_reservations(registry: Any, name: str) -> None:
    await agent(registry, name, "T1", capacity=replace(ROOM, max_concurrency=1))
    await registry.reserve_window(ClientId(name), identity=None, now=T0)


async def removed(registry: Any, name: str) -> None:
    await agent(registry, name, "T1")
    await registry.remove(ClientId(name), epoch=1)


@pytest.mark.parametrize("fill", Fill)
@pytest.mark.parametrize(
    "of_no_use",
    [
        unlinked,
        draining,
        unannounced,
        busy,
        lent,
        full_of_assignments,
        full_of_reservations,
        removed,
    ],
)
async def test_however_many_take_nothing_who_does_is_found(
    registry: Any, of_no_use: Callable[[Any, str], Awaitable[None]], fill: Fill
) -> None:
    for n in range(40):
        await of_no_use(registry, f"no-{n:02}")
    await agent(registry, {Fill.SPREAD: "yes", Fill.PACK: "first"}[fill], "T9")
    found = await taken(registry, placement=replace(SHARED, fill=fill))
    assert found is not None
    assert found.endswith("T9")


async def test_who_has_lent_all_that_was_idle_is_not_in_the_way_for_long(registry: Any) -> None:
    await agent(registry, "last", "T1", "T2", capacity=replace(ROOM, max_concurrency=2))
    assert await taken(registry) == "last/T1"
    for n in range(40):
        await agent(registry, f"client-{n:02}", "T1")
    found = [await taken(registry) for _ in range(42)]
    assert None not in found[:40]
    assert "last/T2" in found[40:]


async def test_what_will_do_is_found_behind_what_will_not_and_that_will_for_another(
    registry: Any,
) -> None:
    crowd = [in_window(f"T{n}", window_id=WindowId("W")) for n in range(5)]
    stranger = in_window("T9", window_id=WindowId("W"), clean=False)
    await agent(registry, "a", *crowd, stranger, in_window("U1"))
    assert [await taken(registry), await taken(registry)] == ["a/U1", None]
    assert await taken(registry, placement=SHARED) == "a/T0"


async def test_a_manager_finds_also_what_was_not_at_hand(registry: Any) -> None:
    """Of 70 tabs in windows that somebody shares, and one that is alone, the store sees 64."""
    room = Capacity(max_concurrency=99, max_windows=99)
    window = WindowId("W")
    crowd = [in_window(f"T{n:02}", window_id=window) for n in range(70)]
    user = in_window("T99", window_id=window, clean=False)
    await agent(registry, "a", *crowd, user, in_window("U1"), capacity=room)
    assert await taken(registry) is None
    manager = WorkerContextManager(
        context_registry=registry, connection_registry=registry, clock=lambda: T0
    )
    handle = await manager.acquire(NS, "task")
    assert handle is not None
    assert handle.assignment.context_id == "U1"


# A success does not grow with what there is


async def test_in_memory_a_success_reads_no_snapshot() -> None:
    class Unread(MemoryRegistry):
        async def snapshot(self, *, now: Any) -> Snapshot:
            raise AssertionError("all there is was read")

    registry = Unread(store_epoch=1, presence_window_s=WINDOW_S)
    await agent(registry, "a", "T1")
    manager = WorkerContextManager(
        context_registry=registry, connection_registry=registry, clock=lambda: T0
    )
    assert await manager.acquire(NS, "task") is not None
    with pytest.raises(AssertionError):
        await manager.acquire(NS, "task")


async def test_over_redis_to_find_nobody_with_a_slot_asks_as_much_of_many_as_of_few(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> None:
    asked = []
    for agents in (2, 40):
        registry = await new_redis_registry(1)
        for n in range(agents):
            await agent(registry, f"agent-{n:02}", "T1", metadata={"gpu": False})
        wanted = request(requirements={"gpu": True})
        assert await registry.select_and_reserve(wanted, now=T0) is None  # the script is known now
        await registry.redis.config_resetstat()
        assert await registry.select_and_reserve(wanted, now=T0) is None
        calls = await registry.redis.info("commandstats")
        asked.append({name: one["calls"] for name, one in calls.items() if "config" not in name})
    assert asked[0] == asked[1]


async def test_over_redis_a_success_is_one_script_that_asks_as_much_of_many_as_of_few(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> None:
    asked = []
    for agents, tabs in ((6, 4), (60, 40)):
        registry = await new_redis_registry(1)
        for n in range(agents):
            names = [f"T{tab}" for tab in range(tabs)]
            await agent(registry, f"agent-{n:02}", *names, metadata={"n": n})
        manager = WorkerContextManager(
            context_registry=registry, connection_registry=registry, clock=lambda: T0
        )
        for n in range(agents // 2 * 4):  # half of them are full
            handle = await manager.acquire(NS, f"t{n}", affinity_client_id=f"agent-{n // 4:02}")
            assert handle is not None
        await registry.redis.config_resetstat()
        assert await manager.acquire(NS, "task") is not None
        calls = await registry.redis.info("commandstats")
        assert calls["cmdstat_evalsha"]["calls"] == 1
        asked.append({name: one["calls"] for name, one in calls.items() if "config" not in name})
    assert asked[0] == asked[1]
