"""What a registry offers besides: turns, one client's release, reservations for a request."""

import asyncio
from typing import Any

from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Namespace,
    WindowId,
)
from farm.core.placement import BrowserPlacement, Mode
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.contexts import ClientRelease, FirstFit
from farm.stores.ports.registries import TurnKeeper
from farm.stores.ports.reservations import PlacedReservations
from tests.stores.pool import (
    LINK,
    NS,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    assigned,
    at,
    hello,
    only,
    registered,
    reported,
    request,
)

ROOM = Capacity(max_concurrency=9, max_windows=3, max_tabs_per_window=3, max_flows=2)


async def test_it_offers_them(registry: Any) -> None:
    assert isinstance(registry, FirstFit)
    assert isinstance(registry, ClientRelease)
    assert isinstance(registry, TurnKeeper)
    assert isinstance(registry, PlacedReservations)


async def test_each_turn_is_had_once_and_each_namespace_has_its_own(registry: Any) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(registry.next_turn(NS)) for _ in range(10)]
    assert sorted(task.result() for task in tasks) == list(range(10))
    assert await registry.next_turn(Namespace("other")) == 0


async def test_one_clients_assignments_end_and_its_contexts_stay_dirty(registry: Any) -> None:
    client = await registered(registry)
    await reported(registry, "T1", "T2", client=client)
    held = await assigned(registry, "T1")
    assert await registry.release_client(Namespace("other"), A, link=None) == ()
    assert await registry.release_client(NS, ClientId("nobody"), link=None) == ()
    generation = registry.generation()
    assert await registry.release_client(NS, A, link=LINK) == (held,)
    assert registry.generation() > generation
    after = await only(registry)
    assert after.assignments == {}
    assert {c.context_id: c.clean for c in after.contexts.values()} == {"T1": False, "T2": True}


async def test_a_link_that_closed_is_the_last_one_until_another_comes(registry: Any) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    await registry.unlink(A, LINK, now=T0)
    await registered(registry, hello(link="link-2"))
    assert await registry.release_client(NS, A, link=LINK) == ()
    await registry.unlink(A, "link-2", now=T0)
    assert await registry.release_client(NS, A, link=LINK) == ()
    assert await registry.release_client(NS, A, link="link-2") == (held,)


async def test_a_request_opens_no_more_windows_than_it_asks_for(registry: Any) -> None:
    await registered(registry, hello(capacity=ROOM))
    few = request(placement=BrowserPlacement(mode=Mode.NEW_WINDOW, max_windows=1))
    assert not isinstance(await registry.reserve_window_for(few, A, now=T0), Denial)
    assert await registry.reserve_window_for(few, A, now=T0) is Denial.FULL
    many = request(placement=BrowserPlacement(mode=Mode.NEW_WINDOW, max_windows=99))
    outcomes = [await registry.reserve_window_for(many, A, now=T0) for _ in range(3)]
    assert [isinstance(o, Denial) for o in outcomes] == [False, False, True]


async def test_an_identity_asked_for_by_two_requests_gets_one_window(registry: Any) -> None:
    await registered(registry, hello(capacity=ROOM))
    shop = request(identity="default/shop")
    assert not isinstance(await registry.reserve_window_for(shop, A, now=T0), Denial)
    assert await registry.reserve_window_for(shop, A, now=T0) is Denial.TAKEN


async def test_a_tab_is_reserved_in_no_window_that_somebody_holds_alone(registry: Any) -> None:
    client = await registered(registry, hello(capacity=ROOM))
    await reported(registry, "T1", client=client, identity="default/shop")
    shop = BrowserPlacement(mode=Mode.IDENTITY, identity="shop")
    alone = BrowserPlacement(mode=Mode.IDENTITY, identity="shop", exclusive=True)
    plain = request(identity="default/shop", placement=shop)
    strict = request(identity="default/shop", placement=alone)
    w1 = WindowId("W1")
    held = await registry.assign(strict, A, ContextId("T1"), now=T0, timeout_s=TIMEOUT_S)
    assert isinstance(held, Assignment)
    assert held.dedicated
    assert await registry.reserve_tab_for(plain, A, w1, now=T0) is Denial.TAKEN
    await registry.release(A, ContextId("T1"), held.token)
    # What it left is not clean, which keeps out who wants the window alone and nobody else.
    assert await registry.reserve_tab_for(strict, A, w1, now=T0) is Denial.TAKEN
    assert not isinstance(await registry.reserve_tab_for(plain, A, w1, now=T0), Denial)


async def test_a_tab_that_is_being_opened_keeps_out_who_wants_its_window_alone(
    registry: Any,
) -> None:
    client = await registered(registry, hello(capacity=ROOM))
    await reported(registry, "T1", client=client, identity="default/shop")
    alone = BrowserPlacement(mode=Mode.IDENTITY, identity="shop", exclusive=True)
    plain, strict = (
        request(identity="default/shop"),
        request(identity="default/shop", placement=alone),
    )
    w1 = WindowId("W1")
    one = await registry.reserve_tab_for(plain, A, w1, now=T0)
    assert isinstance(one, Reservation)
    assert await registry.reserve_tab_for(strict, A, w1, now=T0) is Denial.TAKEN
    how: dict[str, Any] = {"now": T0, "timeout_s": TIMEOUT_S}
    assert await registry.assign(strict, A, ContextId("T1"), **how) is Denial.TAKEN
    await registry.cancel(one)
    assert isinstance(await registry.assign(strict, A, ContextId("T1"), **how), Assignment)


async def test_a_request_opens_no_more_tabs_than_it_asks_for(registry: Any) -> None:
    client = await registered(registry, hello(capacity=ROOM))
    await reported(registry, "T1", client=client, identity="default/shop")
    placement = BrowserPlacement(mode=Mode.NEW_TAB, identity="shop", max_tabs_per_window=2)
    few = request(identity="default/shop", placement=placement)
    assert not isinstance(await registry.reserve_tab_for(few, A, WindowId("W1"), now=T0), Denial)
    assert await registry.reserve_tab_for(few, A, WindowId("W1"), now=T0) is Denial.FULL


async def test_flows_are_reserved_within_their_limit_and_given_back(registry: Any) -> None:
    client = await registered(registry, hello(client_type=ClientType.CONSOLE, capacity=ROOM))
    first, second, third = [await registry.reserve_flow(A, now=T0) for _ in range(3)]
    assert (first.epoch, second.epoch, third) == (client.epoch, client.epoch, Denial.FULL)
    assert (await only(registry)).used_slots() == 2
    await registry.cancel(first)
    assert isinstance(await registry.reserve_flow(A, now=T0), Reservation)
    await registry.cancel(first)
    assert await registry.reserve_flow(A, now=T0) is Denial.FULL


async def test_no_flow_is_reserved_where_no_slot_is_free_or_nobody_is_heard(registry: Any) -> None:
    one = Capacity(max_concurrency=1, max_flows=9)
    await registered(registry, hello(client_type=ClientType.CONSOLE, capacity=one))
    assert await registry.reserve_flow(A, now=at(WINDOW_S + 0.1)) is Denial.NOT_READY
    assert isinstance(await registry.reserve_flow(A, now=at(WINDOW_S)), Reservation)
    assert await registry.reserve_flow(A, now=T0) is Denial.FULL


async def test_a_flow_settles_once_it_is_reported_and_counts_once(registry: Any) -> None:
    client = await registered(registry, hello(client_type=ClientType.CONSOLE, capacity=ROOM))
    one = await registry.reserve_flow(A, now=T0)
    flow = ContextId("f1")
    asked = request(client_type=ClientType.CONSOLE)

    async def settle() -> Any:
        return await registry.settle(asked, one, flow, now=T0, timeout_s=TIMEOUT_S)

    assert await settle() is Denial.NOT_READY
    await reported(registry, Context(context_id=flow), client=client)
    held = await settle()
    assert isinstance(held, Assignment)
    await registry.cancel(one)
    assert await settle() == held
    after = await only(registry)
    assert (after.used_slots(), after.opening_flows) == (1, 0)


async def test_browsers_have_no_flows_and_nobody_unknown_has(registry: Any) -> None:
    await registered(registry, hello(capacity=ROOM))
    assert await registry.reserve_flow(A, now=T0) is Denial.NOT_READY
    assert await registry.reserve_flow(ClientId("nobody"), now=T0) is Denial.GONE


async def test_a_snapshot_is_in_order_of_the_clients_whoever_came_first(registry: Any) -> None:
    for name in ("b", "c", "a"):
        await registered(registry, hello(name, link=f"link-{name}"))
    await registry.unlink(ClientId("c"), "link-c", now=T0)
    await registry.remove(ClientId("b"), epoch=1)
    await registered(registry, hello("b", link="link-b2"))
    snapshot = await registry.snapshot(now=T0)
    assert [client.client_id for client in snapshot.clients] == ["a", "b", "c"]
