"""Which windows are shared, which are lent alone, and what counts in them."""

from typing import Any

import pytest

from farm.core.model import Assignment, Capacity, Context, ContextId, Owner, Window, WindowId
from farm.core.placement import BrowserPlacement, Mode
from farm.core.reservation import Denial
from farm.stores.ports.registries import Registry
from tests.stores.pool import (
    LINK,
    T0,
    T1,
    T2,
    TIMEOUT_S,
    W1,
    A,
    hello,
    in_window,
    only,
    registered,
    reported,
    request,
    tab,
    window,
)

ROOMY = Capacity(max_concurrency=9, max_windows=3, max_tabs_per_window=3)
REUSE = BrowserPlacement(mode=Mode.REUSE_ONLY)
SHOP = "default/shop"
ALONE = BrowserPlacement(mode=Mode.IDENTITY, identity="shop", exclusive=True)


async def test_a_shared_window_is_not_lent_to_who_wants_it_alone(registry: Registry) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, *in_one_window("T1", "T2"), client=client)
    shared = await registry.assign(
        request("s", placement=REUSE), A, T1, now=T0, timeout_s=TIMEOUT_S
    )
    assert isinstance(shared, Assignment)
    assert not shared.dedicated
    denied = await registry.assign(request(), A, ContextId("T2"), now=T0, timeout_s=TIMEOUT_S)
    assert denied is Denial.TAKEN


async def test_a_window_held_alone_takes_nobody_else(registry: Registry) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, *in_one_window("T1", "T2"), client=client)
    alone = await registry.assign(request(), A, T1, now=T0, timeout_s=TIMEOUT_S)
    assert isinstance(alone, Assignment)
    assert alone.dedicated
    assert (await only(registry)).assignments[T1] == alone
    other = request("s", placement=REUSE)
    t2 = ContextId("T2")
    assert await registry.assign(other, A, t2, now=T0, timeout_s=TIMEOUT_S) is Denial.TAKEN
    await registry.release(A, T1, alone.token)
    assert isinstance(await registry.assign(other, A, t2, now=T0, timeout_s=TIMEOUT_S), Assignment)


async def test_windows_that_a_person_opens_take_nothing_of_what_was_negotiated(
    registry: Registry,
) -> None:
    capacity = Capacity(max_concurrency=9, max_windows=2)
    client = await registered(registry, hello(capacity=capacity))
    theirs = [Window(window_id=WindowId(f"U{n}"), owner=Owner.USER) for n in (1, 2, 3)]
    await registry.report(
        A, LINK, epoch=client.epoch, number=1, windows=theirs, contexts=[], now=T0
    )
    await window(registry)
    await window(registry)
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.FULL


async def test_what_a_task_has_opened_is_no_tab_of_its_window_that_counts(
    registry: Registry,
) -> None:
    capacity = Capacity(max_concurrency=9, max_windows=1, max_tabs_per_window=2)
    client = await registered(registry, hello(capacity=capacity))
    popups = [in_window(f"T{n}", window_id=W1, opener=T1, clean=False) for n in (2, 3)]
    await reported(registry, "T1", *popups, client=client, identity="shop")
    assert await registry.assign(request(identity="shop"), A, T2, now=T0, timeout_s=1) is (
        Denial.NOT_READY
    )
    await tab(registry)
    assert await registry.reserve_tab(A, W1, now=T0) is Denial.FULL


@pytest.mark.parametrize("left", [{"clean": False}, {"owner": Owner.USER}], ids=str)
async def test_a_window_with_what_others_left_in_it_is_lent_alone_to_nobody(
    registry: Registry, left: dict[str, Any]
) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, "T1", in_window("T2", window_id=W1, **left), client=client)
    assert await registry.assign(request(), A, T1, now=T0, timeout_s=1) is Denial.TAKEN


async def test_a_window_is_lent_alone_once_what_was_released_in_it_is_clean(
    registry: Registry,
) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, *in_one_window("T1", "T2"), client=client)
    t2 = ContextId("T2")
    shared = await registry.assign(request(placement=REUSE), A, t2, now=T0, timeout_s=1)
    assert isinstance(shared, Assignment)
    await registry.release(A, t2, shared.token)
    assert await registry.assign(request(), A, T1, now=T0, timeout_s=1) is Denial.TAKEN
    await reported(registry, *in_one_window("T1", "T2"), client=client, number=2)
    assert isinstance(await registry.assign(request(), A, T1, now=T0, timeout_s=1), Assignment)


async def test_a_tab_that_is_being_opened_keeps_out_who_wants_its_window_alone(
    registry: Registry,
) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, "T1", client=client, identity=SHOP)
    strict = request(identity=SHOP, placement=ALONE)
    one = await tab(registry)
    assert await registry.assign(strict, A, T1, now=T0, timeout_s=TIMEOUT_S) is Denial.TAKEN
    await registry.cancel(one)
    assert isinstance(await registry.assign(strict, A, T1, now=T0, timeout_s=TIMEOUT_S), Assignment)


async def test_the_tab_reserved_for_who_wants_the_window_alone_is_no_company(
    registry: Registry,
) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, "T1", client=client, identity=SHOP)
    one = await tab(registry)
    both = in_one_window("T1", "T2")
    await reported(registry, *both, client=client, identity=SHOP, number=2)
    settled = await registry.settle(
        request(identity=SHOP, placement=ALONE),
        one,
        ContextId("T2"),
        now=T0,
        timeout_s=TIMEOUT_S,
    )
    assert isinstance(settled, Assignment)
    assert settled.dedicated


@pytest.mark.parametrize(("named", "wanted"), [("W1", None), ("W9", Denial.NOT_READY)])
async def test_who_names_a_window_is_lent_no_tab_of_another(
    registry: Registry, named: str, wanted: Denial | None
) -> None:
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, *in_one_window("T1"), client=client)
    placement = BrowserPlacement(mode=Mode.NAMED_WINDOW, window_id=named)
    outcome = await registry.assign(
        request(placement=placement), A, T1, now=T0, timeout_s=TIMEOUT_S
    )
    assert isinstance(outcome, Assignment) if wanted is None else outcome is wanted


def in_one_window(*ids: str) -> list[Context]:
    return [Context(context_id=ContextId(one), window_id=W1) for one in ids]
