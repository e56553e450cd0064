"""Creation: permitted by the request alone, after everything that is there, within every limit."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.core.eligibility import Reason
from farm.core.model import Assignment, Capacity, ClientId, ClientType, ContextId
from farm.core.reservation import Denial, Reservation
from farm.manager import Acquired, BrowserPlacement, Mode, NotAcquired, WorkerContextManager
from farm.protocol import messages as wire
from farm.stores.memory import MemoryRegistry
from tests.manager.floor import NS, ROOM, Floor, turns

CONSOLE: dict[str, Any] = {"client_type": "console", "auto_provision": True}


async def on(manager: WorkerContextManager, task: str, **asked: Any) -> str | None:
    handle = await manager.acquire(NS, task, **({"auto_provision": True} | asked))
    return None if handle is None else handle.assignment.client_id


async def reason(manager: WorkerContextManager, **asked: Any) -> Reason | None:
    outcome = await manager.try_acquire(NS, "task", **({"auto_provision": True} | asked))
    assert isinstance(outcome, NotAcquired), outcome
    return outcome.verdict.reason


async def test_a_window_is_opened_reported_and_then_assigned(floor: Floor) -> None:
    agent = await floor.agent("a")
    handle = await floor.manager().acquire(NS, "t", auto_provision=True)
    assert handle is not None
    assert len(agent.commands(wire.OpenWindow)) == 1
    assert handle.assignment.dedicated
    assert await floor.used() == 1


async def test_everything_that_is_there_is_tried_before_anything_is_created(floor: Floor) -> None:
    a, b = await floor.agent("a"), await floor.agent("b", "W1.a")
    manager = floor.manager()
    assert await on(manager, "t1", affinity_client_id="a") == "b"
    assert a.orders == b.orders == []
    assert await on(manager, "t2", affinity_client_id="a") == "a"
    assert len(a.commands(wire.OpenWindow)) == 1


async def test_a_tab_is_opened_in_the_window_that_holds_the_identity(floor: Floor) -> None:
    agent = await floor.agent("a")
    manager = floor.manager()
    shop = BrowserPlacement(mode=Mode.PREFER_REUSE, identity="shop")
    first = await manager.acquire(NS, "t1", placement=shop, auto_provision=True)
    second = await manager.acquire(NS, "t2", placement=shop, auto_provision=True)
    assert first is not None
    assert second is not None
    assert len(agent.commands(wire.OpenWindow)) == len(agent.commands(wire.OpenTab)) == 1
    windows = {c.window_id for c in agent.contexts.values()}
    assert len(windows) == 1
    assert await reason(manager, placement=shop) is Reason.NO_TAB_FREE


async def test_a_flow_is_created_for_who_asks_for_a_console(floor: Floor) -> None:
    agent = await floor.console("con")
    manager = floor.manager()
    assert await on(manager, "t1", **CONSOLE) == "con"
    (order,) = agent.commands(wire.CreateFlow)
    assert isinstance(order.body, wire.CreateFlow)
    assert order.body.worker
    assert await on(manager, "t2", **CONSOLE) == "con"
    assert await reason(manager, **CONSOLE) is Reason.NO_FLOW_FREE
    assert await floor.used() == 2


async def test_who_leaves_the_type_open_is_made_a_browser_window_and_no_flow(floor: Floor) -> None:
    console, browser = await floor.console("aaa"), await floor.agent("b")
    assert await on(floor.manager(), "t") == "b"
    assert console.orders == []
    assert len(browser.orders) == 1


@pytest.mark.parametrize("kind", [ClientType.MOBILE, ClientType.WEB])
async def test_nothing_is_created_on_a_phone_or_in_a_page(floor: Floor, kind: ClientType) -> None:
    agent = await floor.agent("m", client_type=kind)
    manager = floor.manager()
    assert await reason(manager, client_type=kind.value) is Reason.CANNOT_PROVISION_TYPE
    assert agent.orders == []


async def test_without_what_it_takes_the_miss_names_what_is_missing(floor: Floor) -> None:
    await floor.agent("a")
    assert await reason(floor.manager(app_node=None)) is Reason.NO_APP_NODE
    lacking = await reason(floor.manager(browser_window_registry=None))
    assert lacking is Reason.NO_BROWSER_WINDOW_REGISTRY


async def test_without_permission_nothing_is_sent_to_anybody(floor: Floor) -> None:
    a, con = await floor.agent("a"), await floor.console("con")
    manager = floor.manager()
    assert await reason(manager, auto_provision=False) is Reason.CREATION_NOT_PERMITTED
    reuse = BrowserPlacement(mode=Mode.REUSE_ONLY)
    assert await reason(manager, placement=reuse) is Reason.CREATION_NOT_PERMITTED
    assert a.orders == con.orders == []


async def test_where_one_manager_creates_the_others_do_not(floor: Floor) -> None:
    agent = await floor.agent("a")
    elected = floor.manager(name="one", provisioning_owner="one")
    other = floor.manager(name="two", provisioning_owner="one")
    assert await reason(other) is Reason.NOT_PROVISIONING_OWNER
    assert agent.orders == []
    assert await on(elected, "t") == "a"
    await agent.has("W9.a")
    assert await on(other, "u") == "a"  # what is there it may lend


async def test_who_creates_may_be_said_for_each_client(floor: Floor) -> None:
    await floor.agent("a")
    await floor.agent("b")
    manager = floor.manager(
        name="one", provisioning_owner=lambda _, client_id: "any" if client_id == "b" else "two"
    )
    assert await on(manager, "t") == "b"


@settings(max_examples=30, deadline=None)
@given(
    windows=st.integers(1, 3),
    slots=st.integers(1, 4),
    cap=st.sampled_from([None, 1, 2]),
    askers=st.integers(1, 8),
)
def test_however_many_create_at_once_no_limit_is_passed(
    windows: int, slots: int, cap: int | None, askers: int
) -> None:
    async def story() -> None:
        floor = Floor()
        capacity = Capacity(max_concurrency=slots, max_windows=windows)
        agent = await floor.agent("a", capacity=capacity)
        placement = BrowserPlacement(mode=Mode.DEDICATED_WINDOW, max_windows=cap)
        managers = [floor.manager(), floor.manager()]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    managers[n % 2].acquire(NS, f"t{n}", placement=placement, auto_provision=True)
                )
                for n in range(askers)
            ]
        held = sum(task.result() is not None for task in tasks)
        assert held == min(askers, windows, slots, cap or 99)
        assert len(agent.commands(wire.OpenWindow)) == held == await floor.used()

    asyncio.run(story())


async def test_however_many_create_flows_at_once_max_flows_holds(floor: Floor) -> None:
    agent = await floor.console("con")
    manager = floor.manager()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(manager.acquire(NS, f"t{n}", **CONSOLE)) for n in range(6)]
    assert sum(task.result() is not None for task in tasks) == ROOM.max_flows
    assert len(agent.commands(wire.CreateFlow)) == ROOM.max_flows


async def test_a_creation_that_fails_goes_on_elsewhere(floor: Floor) -> None:
    bad = await floor.agent("a")
    bad.silent = True
    good = await floor.agent("b")
    manager = floor.manager(provision_timeout_s=10)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.try_acquire(NS, "t", auto_provision=True))
        await turns(lambda: bad.orders)
        order = bad.orders[0]
        await floor.node.answered(
            ClientId("a"), wire.Ack(command_id=order.command_id, refused="busy")
        )
    outcome = task.result()
    assert isinstance(outcome, Acquired)
    assert outcome.handle.assignment.client_id == good.client_id
    assert await floor.used() == 1


async def test_where_every_creation_fails_each_agent_is_asked_once_and_each_has_its_reason(
    floor: Floor,
) -> None:
    agents = [await floor.agent(name) for name in "ab"]
    for agent in agents:
        await floor.node.detach(agent.client_id, agent.client.link)  # type: ignore[arg-type]
    outcome = await floor.manager().try_acquire(NS, "t", auto_provision=True)
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.clients == {
        "a": Reason.CREATION_FAILED,
        "b": Reason.CREATION_FAILED,
    }
    assert await floor.used() == 0


async def test_a_window_that_comes_too_late_is_lent_to_the_next(floor: Floor) -> None:
    agent = await floor.agent("a")
    agent.reports = False
    manager = floor.manager(provision_timeout_s=0.02)
    assert await reason(manager) is Reason.CREATION_FAILED
    assert await floor.used() == 0
    await agent.report()
    handle = await manager.acquire(NS, "next")
    assert handle is not None
    assert handle.assignment.context_id == ContextId("a-new1")
    assert len(agent.commands(wire.OpenWindow)) == 1


async def test_who_waits_for_a_creation_that_fails_rests_before_the_next(floor: Floor) -> None:
    agent = await floor.agent("a")
    agent.reports = False
    manager = floor.manager(provision_timeout_s=0.3)
    outcome = await manager.try_acquire(NS, "t", auto_provision=True, wait=0.4)
    assert isinstance(outcome, NotAcquired)
    assert len(agent.commands(wire.OpenWindow)) == 1


@pytest.mark.parametrize("after", range(10))
async def test_a_flow_whose_asker_is_cancelled_leaves_no_reservation(
    floor: Floor, after: int
) -> None:
    await floor.console("con")
    manager = floor.manager()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.acquire(NS, "t", **CONSOLE))
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
    client = await floor.client("con")
    assert client.opening_flows == 0
    if not task.cancelled() and (handle := task.result()) is not None:
        assert await handle.release()
    assert not client.assignments or not task.cancelled()


def loses_the_answer_of_settle(floor: Floor) -> asyncio.Event:
    """Let the registry settle, and never say so; return what is set once it has."""
    registry: Any = floor.registry
    settle, settled = registry.settle, asyncio.Event()

    async def settle_in_silence(*asked: Any, **how: Any) -> None:
        if isinstance(await settle(*asked, **how), Assignment):
            settled.set()
            await asyncio.Event().wait()

    registry.settle = settle_in_silence
    return settled


@pytest.mark.parametrize("ends", ["cancelled", "too late"])
async def test_a_settling_whose_answer_is_lost_takes_nobody_elses_room(
    floor: Floor, ends: str
) -> None:
    await floor.agent("a", capacity=Capacity(max_concurrency=9, max_windows=2))
    settled = loses_the_answer_of_settle(floor)
    manager = floor.manager(provision_timeout_s=0.02 if ends == "too late" else 5.0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.acquire(NS, "t", auto_provision=True))
        await settled.wait()
        others = await floor.registry.reserve_window(ClientId("a"), identity=None, now=floor.now)
        if ends == "cancelled":
            task.cancel()
    client = await floor.client("a")
    assert (len(client.assignments), client.opening_windows) == (1, 1)
    full = await floor.registry.reserve_window(ClientId("a"), identity=None, now=floor.now)
    assert full is Denial.FULL
    assert isinstance(others, Reservation)


async def test_over_a_registry_without_reservations_for_requests_windows_are_still_opened(
    floor: Floor,
) -> None:
    class Windows:
        def __init__(self, registry: MemoryRegistry) -> None:
            for name in ("reserve_window", "reserve_tab", "cancel", "settle"):
                setattr(self, name, getattr(registry, name))

    class Contexts(Windows):
        def __init__(self, registry: MemoryRegistry) -> None:
            for name in ("snapshot", "report", "assign", "restore", "renew", "holds", "release"):
                setattr(self, name, getattr(registry, name))

    agent = await floor.agent("a")
    await floor.console("con")
    contexts = Contexts(floor.registry)
    manager = floor.manager(
        context_registry=contexts,
        connection_registry=contexts,
        browser_window_registry=Windows(floor.registry),
    )
    shop = BrowserPlacement(mode=Mode.IDENTITY, identity="shop")
    for task in ("t1", "t2"):
        assert await on(manager, task, placement=shop) == "a"
    assert len(agent.commands(wire.OpenWindow)) == len(agent.commands(wire.OpenTab)) == 1
    assert await reason(manager, **CONSOLE) is Reason.NO_FLOW_REGISTRY
