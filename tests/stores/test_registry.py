"""What every implementation of the registry ports promises."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from farm.core.model import (
    Assignment,
    Bounds,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    ContextState,
    LinkId,
    Namespace,
    Owner,
    Token,
    Window,
    WindowId,
)
from farm.core.placement import BrowserPlacement, Mode
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.registries import Registry
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    NewRegistry,
    assigned,
    at,
    hello,
    in_window,
    only,
    registered,
    reported,
    request,
    tab,
    window,
)

T1 = ContextId("T1")
T2 = ContextId("T2")
W1 = WindowId("W1")
HERE = Bounds(left=10, top=-4, width=1280, height=800)


# Reports, promise 1


async def test_a_report_is_the_complete_picture_and_what_is_missing_is_gone(
    registry: Registry,
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", "T2", client=client)
    held = await assigned(registry, "T1")
    assert await reported(registry, "T2", client=client, number=2) == (held,)
    now = await only(registry)
    assert set(now.contexts) == {"T2"}
    assert now.assignments == {}


@pytest.mark.parametrize("number", [0, 1])
async def test_a_report_with_an_older_number_changes_nothing(
    registry: Registry, number: int
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client, number=1)
    before = await only(registry)
    assert await reported(registry, client=client, number=number) is Denial.STALE
    assert await only(registry) == before


async def test_a_report_of_another_epoch_or_link_or_of_nobody_changes_nothing(
    registry: Registry,
) -> None:
    client = await registered(registry)
    later = await registered(registry, hello(link="link-2"), epoch="browser-2")
    assert later.epoch > client.epoch
    before = await only(registry)
    link = LinkId("link-2")
    assert await reported(registry, "T1", client=client, number=9, link=link) is Denial.STALE
    assert await reported(registry, "T1", client=later, number=9, link=LINK) is Denial.STALE
    nobody = replace(later, client_id=ClientId("nobody"))
    assert await reported(registry, "T1", client=nobody, link=link) is Denial.STALE
    assert await only(registry) == before


async def test_an_assignment_survives_a_lost_link_in_its_epoch(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    assert await registry.unlink(A, LINK, now=at(1))
    again = await registered(registry, hello(link="link-2"), now=at(2))
    assert again.epoch == client.epoch
    assert await registry.holds(A, T1, held.token)
    link = LinkId("link-2")
    assert await reported(registry, "T1", client=again, number=1, link=link) == ()
    assert await registry.holds(A, T1, held.token)


async def test_an_assignment_never_crosses_into_a_new_epoch_though_tab_numbers_repeat(
    registry: Registry,
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    again = await registered(registry, hello(link="link-2"), epoch="browser-2")
    await reported(registry, "T1", client=again, link=LinkId("link-2"))
    assert (await only(registry)).assignments == {}
    assert not await registry.holds(A, T1, held.token)
    assert await registry.renew(A, T1, held.token, now=T0, timeout_s=1) is None
    assert not await registry.release(A, T1, held.token)


# Presence, promise 2


async def test_an_agent_that_is_silent_or_away_is_given_nothing(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    late = at(WINDOW_S + 0.1)
    refused = await registry.assign(request(), A, T1, now=late, timeout_s=1)
    assert refused is Denial.NOT_READY
    assert await registry.reserve_window(A, identity=None, now=late) is Denial.NOT_READY
    assert await registry.heard(A, LINK, now=late)
    assert await registry.unlink(A, LINK, now=late)
    assert await registry.assign(request(), A, T1, now=late, timeout_s=1) is Denial.NOT_READY
    assert await registry.reserve_window(A, identity=None, now=late) is Denial.NOT_READY


async def test_an_old_link_is_not_heard_and_cannot_unlink_the_new_one(registry: Registry) -> None:
    await registered(registry)
    await registered(registry, hello(link="link-2"))
    assert not await registry.heard(A, LINK, now=at(5))
    assert not await registry.unlink(A, LINK, now=at(5))
    now = await only(registry)
    assert (now.link, now.seen_at) == ("link-2", T0)


async def test_a_second_process_is_refused_while_the_first_is_there(registry: Registry) -> None:
    await registered(registry)
    other = hello(link="link-2", instance="another")
    assert await _register(registry, other, now=at(1)) is Denial.IN_USE
    assert isinstance(await _register(registry, other, now=at(WINDOW_S + 1)), Client)


async def test_a_second_process_is_refused_while_the_first_may_still_run_something(
    registry: Registry,
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    await registry.unlink(A, LINK, now=at(1))
    other = hello(link="link-2", instance="another")
    assert await _register(registry, other, now=at(2)) is Denial.IN_USE
    assert await registry.holds(A, T1, held.token)
    assert await registry.remove(A, epoch=client.epoch) == (held,)
    assert isinstance(await _register(registry, other, now=at(3)), Client)


async def _register(registry: Registry, client: Client, *, now: float) -> Client | Denial:
    return await registry.register(
        client, epoch_name=f"of {client.instance}", highest_token=None, now=at(now - T0)
    )


async def test_removing_an_earlier_epoch_changes_nothing(registry: Registry) -> None:
    client = await registered(registry)
    await registered(registry, hello(link="link-2"), epoch="browser-2")
    assert await registry.remove(A, epoch=client.epoch) is None
    assert (await only(registry)).link == "link-2"


async def test_an_agent_heard_of_since_it_was_seen_to_be_silent_is_not_removed(
    registry: Registry,
) -> None:
    client = await registered(registry)
    await registry.heard(A, LINK, now=at(20))
    assert await registry.remove(A, epoch=client.epoch, seen_at=T0) is None
    assert (await only(registry, now=at(20))).seen_at == at(20)
    assert await registry.remove(A, epoch=client.epoch, seen_at=at(20)) == ()
    assert (await registry.snapshot(now=at(20))).clients == ()


async def test_epochs_grow_also_after_a_removal(registry: Registry) -> None:
    first = await registered(registry)
    await registry.remove(A, epoch=first.epoch)
    assert (await registered(registry)).epoch > first.epoch


async def test_a_draining_agent_is_given_nothing(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    await registry.set_draining(A, because="low_disk: 9 bytes are free")
    assert await registry.assign(request(), A, T1, now=T0, timeout_s=1) is Denial.NOT_READY
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.NOT_READY
    (known,) = (await registry.snapshot(now=T0)).clients
    assert (known.draining, known.draining_because) == (True, "low_disk: 9 bytes are free")
    await registry.set_draining(A, False)
    (known,) = (await registry.snapshot(now=T0)).clients
    assert (known.draining, known.draining_because) == (False, "")
    assert not isinstance(await registry.assign(request(), A, T1, now=T0, timeout_s=1), Denial)


# P4: many ask, as many win as there is room


async def test_of_many_who_ask_exactly_as_many_win_as_there_is_room(registry: Registry) -> None:
    client = await registered(registry)
    tabs = [f"T{n}" for n in range(20)]
    await reported(registry, *tabs, client=client)
    won: list[Assignment] = []

    async def ask(tab: str) -> None:
        outcome = await registry.assign(request(tab), A, ContextId(tab), now=T0, timeout_s=1)
        if isinstance(outcome, Assignment):
            won.append(outcome)
        else:
            assert outcome is Denial.FULL

    async with asyncio.TaskGroup() as group:
        for tab in tabs:
            group.create_task(ask(tab))
    assert len(won) == 2
    assert len({one.token for one in won}) == 2
    assert (await only(registry)).used_slots() == 2


async def test_of_many_who_ask_for_one_context_one_wins(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    outcomes = [
        await registry.assign(request(f"t{n}"), A, T1, now=T0, timeout_s=1) for n in range(20)
    ]
    assert [isinstance(o, Assignment) for o in outcomes] == [True] + [False] * 19
    assert set(outcomes[1:]) == {Denial.TAKEN}


async def test_a_context_that_is_not_there_or_not_clean_is_not_assigned(
    registry: Registry,
) -> None:
    client = await registered(registry)
    await reported(registry, in_window("T1", clean=False), client=client)
    assert await registry.assign(request(), A, T1, now=T0, timeout_s=1) is Denial.NOT_READY
    nowhere = ContextId("T9")
    assert await registry.assign(request(), A, nowhere, now=T0, timeout_s=1) is Denial.GONE


REQUESTS: dict[str, dict[str, Any]] = {
    "another namespace": {"namespace": Namespace("other")},
    "another type": {"client_type": ClientType.CONSOLE},
    "a value of another type": {"requirements": {"n": 1.0}},
    "a key that is not there": {"requirements": {"n": 1, "m": None}},
    "one value of two": {"requirements": {"n": 1, "nested": {"a": [1, 2], "b": "2"}}},
    "no identity": {"identity": None},
    "another identity": {"identity": "mail"},
    "other options": {"profile": "p"},
}
CONTEXTS: dict[str, dict[str, Any]] = {
    "a person's": {"owner": Owner.USER},
    "not clean": {"clean": False},
    "of no window": {"window_id": None},
    "loading": {"state": ContextState.LOADING},
    "crashed": {"state": ContextState.CRASHED},
    "closing": {"state": ContextState.CLOSING},
}
CLIENTS: dict[str, tuple[dict[str, Any], Denial]] = {
    "draining": ({"draining": True}, Denial.NOT_READY),
    "of another namespace": ({"namespaces": (Namespace("other"),)}, Denial.NOT_READY),
    "of no announced capacity": ({"capacity": Capacity()}, Denial.NOT_READY),
    "of no capacity": ({"capacity": Capacity(max_concurrency=0)}, Denial.FULL),
}


@pytest.mark.parametrize("through", ["one", "one/", "", "one/tw"])
async def test_a_context_of_an_agent_that_is_linked_elsewhere_is_not_assigned(
    registry: Registry, through: str
) -> None:
    agent = await registered(registry, hello(link="one.b/2"))
    await reported(registry, "T1", client=agent, link=LinkId("one.b/2"))
    elsewhere = request(through=through)
    assert await registry.assign(elsewhere, A, T1, now=T0, timeout_s=1) is Denial.NOT_READY
    here = request(through="one.b")
    assert isinstance(await registry.assign(here, A, T1, now=T0, timeout_s=1), Assignment)


METADATA = {"n": 1, "nested": {"b": 2, "a": [1, 2]}, "none": None, "": "\ud83d/\0"}


async def _asks(
    registry: Registry,
    wanted: Mapping[str, Any] = {},
    context: Mapping[str, Any] = {},
    client: Mapping[str, Any] = {},
) -> Assignment | Denial:
    """Ask for a context that fits the request in everything but what is given."""
    agent = await registered(registry, hello(**{"metadata": METADATA, **client}))
    await reported(registry, in_window("T1", **context), client=agent, identity="shop")
    fits: dict[str, Any] = {
        "identity": "shop",
        "client_type": ClientType.BROWSER,
        "requirements": METADATA,
    }
    return await registry.assign(request(**{**fits, **wanted}), A, T1, now=T0, timeout_s=1)


@pytest.mark.parametrize("state", [ContextState.IDLE, ContextState.ACTIVE])
@pytest.mark.parametrize("wanted", [{}, {"requirements": {}}, {"client_type": None}])
async def test_a_context_that_fits_is_assigned(
    registry: Registry, state: ContextState, wanted: dict[str, Any]
) -> None:
    assert isinstance(await _asks(registry, wanted, {"state": state}), Assignment)


@pytest.mark.parametrize("wanted", REQUESTS.values(), ids=REQUESTS)
async def test_a_context_that_is_not_what_is_asked_for_is_not_assigned(
    registry: Registry, wanted: dict[str, Any]
) -> None:
    assert await _asks(registry, wanted) is Denial.NOT_READY


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
async def test_a_context_that_is_not_to_be_had_is_not_assigned(
    registry: Registry, context: dict[str, Any]
) -> None:
    assert await _asks(registry, context=context) is Denial.NOT_READY


@pytest.mark.parametrize(("client", "denial"), CLIENTS.values(), ids=CLIENTS)
async def test_a_context_of_an_agent_that_takes_nothing_is_not_assigned(
    registry: Registry, client: dict[str, Any], denial: Denial
) -> None:
    assert await _asks(registry, client=client) is denial


async def test_an_agent_is_present_up_to_the_end_of_its_window(registry: Registry) -> None:
    await reported(registry, "T1", client=await registered(registry))
    assert isinstance(await registry.assign(request(), A, T1, now=at(10), timeout_s=1), Assignment)
    assert isinstance(await registry.reserve_window(A, identity=None, now=at(10)), Reservation)


async def test_what_an_agent_said_is_what_is_read(registry: Registry) -> None:
    """Every field of the core's values, each unlike its default."""
    said = hello(
        client_type=ClientType.CONSOLE,
        namespaces=(Namespace("b"), Namespace("a")),
        metadata=METADATA,
        capacity=Capacity(max_concurrency=9, max_windows=8, max_tabs_per_window=7, max_flows=6),
        draining=True,
        browser="Chromium 150",
    )
    windows = [Window(window_id=W1, identity="shop", profile="p", owner=Owner.USER, bounds=HERE)]
    context = Context(
        context_id=T1,
        window_id=W1,
        owner=Owner.USER,
        state=ContextState.CRASHED,
        clean=False,
        opener=T2,
    )
    epoch = (await registered(registry, said)).epoch
    await registry.report(
        A, LINK, epoch=epoch, number=1, windows=windows, contexts=[context], now=at(0.1)
    )
    assert await only(registry) == replace(
        said,
        epoch=epoch,
        seen_at=at(0.1),
        windows={W1: windows[0]},
        contexts={T1: context},
    )


# P8, P9: tokens and time


async def test_a_stale_token_neither_holds_nor_renews_nor_releases(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    old = await assigned(registry)
    assert await registry.release(A, T1, old.token)
    await reported(registry, "T1", client=client, number=2)
    new = await assigned(registry, task="next")
    assert new.token > old.token
    assert not await registry.holds(A, T1, old.token)
    assert await registry.renew(A, T1, old.token, now=T0, timeout_s=99) is None
    assert not await registry.release(A, T1, old.token)
    assert (await only(registry)).assignments == {T1: new}


async def test_what_is_released_is_dirty_until_its_agent_says_clean(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    await registry.release(A, T1, held.token)
    assert await registry.assign(request(), A, T1, now=T0, timeout_s=1) is Denial.NOT_READY
    assert (await only(registry)).used_slots() == 0
    await reported(registry, "T1", client=client, number=2)
    await assigned(registry)


async def test_past_its_time_an_assignment_holds_until_it_is_swept(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    late = at(TIMEOUT_S + 5)
    await registry.heard(A, LINK, now=late)
    assert await registry.holds(A, T1, held.token)
    assert await registry.assign(request("x"), A, T1, now=late, timeout_s=1) is Denial.TAKEN
    renewed = await registry.renew(A, T1, held.token, now=late, timeout_s=TIMEOUT_S)
    assert renewed is not None
    assert await registry.release_expired(now=late) == ()
    assert await registry.release_expired(now=renewed.expires_at) == (renewed,)
    assert not await registry.holds(A, T1, held.token)
    assert not (await only(registry)).contexts[T1].clean


@pytest.mark.parametrize("how", ["released", "missing", "of an old epoch", "removed"])
async def test_what_has_ended_is_not_ended_once_more_by_the_sweep(
    registry: Registry, how: str
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    held = await assigned(registry)
    match how:
        case "released":
            await registry.release(A, T1, held.token)
        case "missing":
            await reported(registry, client=client, number=2)
        case "of an old epoch":
            await registered(registry, epoch="browser-2")
        case _:
            await registry.remove(A, epoch=client.epoch)
    before = registry.generation()
    assert await registry.release_expired(now=at(TIMEOUT_S)) == ()
    assert registry.generation() == before


async def test_tokens_grow_beyond_what_the_agent_has_seen_of_a_later_store(
    new_registry: NewRegistry,
) -> None:
    registry = await new_registry(3)
    seen = Token(store_epoch=7, counter=5)
    client = await registered(registry, highest=seen)
    await reported(registry, "T1", client=client)
    first = await assigned(registry)
    assert first.token > seen
    again = await registered(registry, highest=Token(store_epoch=2, counter=99))
    await registry.release(A, T1, first.token)
    await reported(registry, "T1", client=again, number=1)
    assert (await assigned(registry)).token > first.token


async def test_a_later_store_gives_greater_tokens_and_a_removed_agent_no_lesser_ones(
    new_registry: NewRegistry,
) -> None:
    last = Token(store_epoch=0, counter=0)
    for epoch in (1, 2):
        registry = await new_registry(epoch)
        for _ in range(2):
            client = await registered(registry)
            await reported(registry, "T1", client=client)
            token = (await assigned(registry)).token
            assert token > last
            last = token
            await registry.remove(A, epoch=client.epoch)


async def test_a_restored_assignment_holds_its_slot_and_raises_the_token(
    new_registry: NewRegistry,
) -> None:
    before, registry = await new_registry(5), await new_registry(4)
    client = await registered(before)
    await reported(before, "T1", client=client)
    held = await assigned(before)
    again = await registered(registry)
    assert await registry.restore(held)
    assert not await registry.restore(held)
    assert await registry.holds(A, T1, held.token)
    assert (await only(registry)).used_slots() == 1
    assert await reported(registry, "T1", "T2", client=again) == ()
    assert (await assigned(registry, "T2")).token > held.token
    assert not await registry.restore(replace(held, client_id=ClientId("nobody")))


# Wakes, promise 7


async def test_a_waiter_wakes_at_a_change_and_at_one_that_came_before_it_waited(
    registry: Registry,
) -> None:
    generation = registry.generation()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(registry.changed_since(generation))
        await asyncio.sleep(0)
        client = await registered(registry)
        await registry.changed_since(generation)
    before = registry.generation()
    await reported(registry, "T1", client=client)
    assert registry.generation() > before


async def test_what_gives_room_back_wakes_and_what_takes_it_does_not(registry: Registry) -> None:
    await reported(registry, "T1", client=await registered(registry))
    between = registry.generation()
    held = await assigned(registry)
    await registry.renew(A, T1, held.token, now=T0, timeout_s=9)
    one = await window(registry)
    assert registry.generation() == between
    await registry.cancel(one)
    assert registry.generation() > between
    between = registry.generation()
    await registry.release(A, T1, held.token)
    assert registry.generation() > between


async def test_an_agent_that_was_silent_too_long_and_is_heard_again_wakes(
    registry: Registry,
) -> None:
    await registered(registry)
    before = registry.generation()
    assert await registry.heard(A, LINK, now=at(WINDOW_S))
    assert registry.generation() == before
    assert await registry.heard(A, LINK, now=at(2 * WINDOW_S + 1))
    assert registry.generation() > before


# Whose window, promise 4


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
