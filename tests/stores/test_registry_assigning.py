"""To whom a context is assigned, and what becomes of that."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ClientType,
    ContextId,
    ContextState,
    LinkId,
    Namespace,
    Owner,
    Token,
)
from farm.core.reservation import Denial
from farm.stores.ports.registries import Registry
from tests.stores.pool import (
    LINK,
    METADATA,
    T0,
    T1,
    TIMEOUT_S,
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
)


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
