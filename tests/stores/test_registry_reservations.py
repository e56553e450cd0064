"""Room that is reserved is taken once and given back once, whatever is said again (P5)."""

import pytest

from farm.core import decide
from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ContextId,
    Instant,
    LinkId,
    WindowId,
)
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.registries import Registry
from tests.stores.pool import (
    LINK,
    RESERVED_S,
    T0,
    T1,
    W1,
    WINDOW_S,
    A,
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

TWO_WINDOWS = Capacity(max_concurrency=9, max_windows=2)


async def test_a_reservation_takes_a_slot_and_a_window_and_gives_them_back(
    registry: Registry,
) -> None:
    client = await registered(registry)
    first, second = await window(registry), await window(registry)
    assert first.epoch == second.epoch == client.epoch
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.FULL
    await registry.cancel(first)
    assert (await only(registry)).used_slots() == 1
    await window(registry)


async def test_windows_that_are_open_count(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", "T2", "T3", "T4", client=client)
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.FULL


async def test_tabs_that_are_open_or_being_opened_count(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client, identity="shop")
    first = await tab(registry)
    assert first.epoch == client.epoch
    assert await registry.reserve_tab(A, W1, now=T0) is Denial.FULL
    await registry.cancel(first)
    await tab(registry)
    assert await registry.reserve_tab(A, WindowId("W9"), now=T0) is Denial.GONE


@pytest.mark.parametrize("kind", ["window", "tab"])
async def test_nothing_is_reserved_on_an_agent_that_takes_nothing(
    registry: Registry, kind: str
) -> None:
    async def reserve(client_id: ClientId = A, *, now: float = 0) -> Reservation | Denial:
        if kind == "tab":
            return await registry.reserve_tab(client_id, W1, now=at(now))
        return await registry.reserve_window(client_id, identity=None, now=at(now))

    assert await reserve(ClientId("nobody")) is Denial.GONE
    capacity = Capacity(max_concurrency=1, max_windows=3, max_tabs_per_window=3)
    client = await registered(registry, hello(capacity=capacity))
    await reported(registry, "T1", client=client)
    assert await reserve(now=WINDOW_S + 0.1) is Denial.NOT_READY
    assert isinstance(await reserve(now=WINDOW_S), Reservation)
    assert await reserve() is Denial.FULL
    await registered(registry, hello(capacity=Capacity(), link="link-2"))
    assert await reserve() is Denial.FULL
    await registry.unlink(A, LinkId("link-2"), now=T0)
    assert await reserve() is Denial.NOT_READY
    await registered(registry, hello(link="link-3", draining=True))
    assert await reserve() is Denial.NOT_READY


async def test_an_identity_gets_one_window_among_all_agents(registry: Registry) -> None:
    client = await registered(registry)
    await registered(registry, hello("b"), epoch="browser-b")
    b = ClientId("b")
    first = await window(registry, identity="shop")
    assert await registry.reserve_window(b, identity="shop", now=T0) is Denial.TAKEN
    await reported(registry, "T1", client=client, identity="shop")
    await registry.cancel(first)
    assert await registry.reserve_window(b, identity="shop", now=T0) is Denial.TAKEN
    await reported(registry, client=client, number=2)
    assert not isinstance(await registry.reserve_window(b, identity="shop", now=T0), Denial)


async def test_a_reservation_becomes_the_assignment_of_its_tab(registry: Registry) -> None:
    client = await registered(registry)
    one = await window(registry)
    assert await _settle(registry, one) is Denial.NOT_READY
    assert (await only(registry)).used_slots() == 1
    await reported(registry, "T1", client=client)
    held = await _settle(registry, one)
    assert isinstance(held, Assignment)
    now = await only(registry)
    assert (now.used_slots(), now.opening_windows) == (1, 0)
    assert now.assignments == {T1: held}


async def test_a_reservation_settles_when_every_other_slot_is_taken(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T2", client=client)
    await assigned(registry, "T2")
    one = await window(registry)
    await reported(registry, "T1", "T2", client=client, number=2)
    assert isinstance(await _settle(registry, one), Assignment)
    assert (await only(registry)).used_slots() == 2


async def test_a_tab_settles_in_its_window(registry: Registry) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client, identity="shop")
    one = await tab(registry)
    both = ("T1", in_window("T2", window_id=W1))
    await reported(registry, *both, client=client, number=2, identity="shop")
    held = await _settle(registry, one, "T2", identity="shop")
    assert isinstance(held, Assignment)
    now = await only(registry)
    assert (now.used_slots(), dict(now.opening_tabs)) == (1, {})
    assert decide.tabs_in(now, W1) == 2


async def test_a_reservation_ends_with_its_epoch(registry: Registry) -> None:
    await registered(registry)
    old = await window(registry, identity="shop")
    later = await registered(registry, hello(link="link-2"), epoch="browser-2")
    await window(registry, identity="shop")
    await registry.cancel(old)
    assert (await only(registry)).opening_windows == 1
    await reported(registry, "T1", client=later, link=LinkId("link-2"))
    assert await _settle(registry, old) is Denial.GONE


async def test_a_reservation_ends_with_its_client(registry: Registry) -> None:
    client = await registered(registry)
    one = await window(registry)
    await registry.remove(A, epoch=client.epoch)
    before = registry.generation()
    await registry.cancel(one)
    assert await _settle(registry, one) is Denial.GONE
    await registry.release_expired(now=at(9_999))
    assert registry.generation() == before


async def test_giving_back_twice_gives_back_once(registry: Registry) -> None:
    await reported(registry, "T1", client=await registered(registry))
    both = [await window(registry), await tab(registry)]
    for one in both:
        await registry.cancel(one)
        before = registry.generation()
        await registry.cancel(one)
        assert registry.generation() == before
        assert (await only(registry)).used_slots() == len(both) - both.index(one) - 1


async def test_what_was_settled_is_given_back_never_again(registry: Registry) -> None:
    """Two windows are reserved and one settled: to cancel that one is not to cancel the other."""
    client = await registered(registry, hello(capacity=TWO_WINDOWS))
    one, _ = await window(registry), await window(registry)
    await reported(registry, "T1", client=client)
    held = await _settle(registry, one)
    await registry.cancel(one)
    now = await only(registry)
    assert (now.opening_windows, now.assignments) == (1, {T1: held})
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.FULL


async def test_what_was_given_back_in_its_time_is_given_back_never_again(
    registry: Registry,
) -> None:
    client = await registered(registry, hello(capacity=TWO_WINDOWS))
    one = await window(registry)
    await registry.heard(A, LINK, now=at(15))
    await window(registry, now=at(15))
    await registry.release_expired(now=at(RESERVED_S))
    await registry.cancel(one)
    assert (await only(registry)).opening_windows == 1
    await reported(registry, "T1", client=client, now=at(RESERVED_S))
    assert await _settle(registry, one) is Denial.GONE
    full = await registry.reserve_window(A, identity=None, now=at(RESERVED_S))
    assert full is Denial.FULL


async def test_a_reservation_is_believed_in_until_its_time_is_over_and_swept(
    registry: Registry,
) -> None:
    client = await registered(registry)
    one, other = await window(registry, identity="shop"), await window(registry)
    before = registry.generation()
    await registry.release_expired(now=at(RESERVED_S - 1))
    assert registry.generation() == before
    # It is past its time, but nobody has looked yet.
    await reported(registry, "T1", client=client, now=at(RESERVED_S), identity="shop")
    held = await _settle(registry, one, identity="shop", now=at(RESERVED_S))
    assert isinstance(held, Assignment)
    before = registry.generation()
    assert await registry.release_expired(now=at(RESERVED_S)) == ()
    assert registry.generation() > before
    now = await only(registry)
    assert (now.opening_windows, now.used_slots()) == (0, 1)
    assert await _settle(registry, other) is Denial.GONE


async def test_each_reservation_is_given_back_in_its_own_time(registry: Registry) -> None:
    b = ClientId("b")
    roomy = Capacity(max_concurrency=9, max_windows=9, max_tabs_per_window=9)
    for name in (A, b):
        agent = await registered(registry, hello(name, capacity=roomy), epoch=name)
        await reported(registry, "T1", client=agent)
    for name in (A, b):
        await window(registry, name)
        shop = await window(registry, name, identity=f"shop of {name}", now=at(2))
        await window(registry, name, now=at(4))
        await window(registry, name, identity=f"mail of {name}", now=at(6))
        if name == A:
            await registry.cancel(shop)
            await tab(registry, now=at(1))
    left = []
    for after in (0, 1, 2, 4, 6):
        assert await registry.release_expired(now=at(RESERVED_S + after)) == ()
        clients = (await registry.snapshot(now=T0)).clients
        left.append([(c.opening_windows, len(c.opening_tabs)) for c in clients])
    assert left == [
        [(2, 1), (3, 0)],
        [(2, 0), (3, 0)],
        [(2, 0), (2, 0)],
        [(1, 0), (1, 0)],
        [(0, 0), (0, 0)],
    ]
    assert not any(c.opening_identities for c in (await registry.snapshot(now=T0)).clients)


async def test_an_identity_is_free_again_once_its_reservation_is_over(registry: Registry) -> None:
    await registered(registry)
    await window(registry, identity="shop")
    await registry.release_expired(now=at(RESERVED_S))
    assert (await only(registry)).opening_identities == {}
    await window(registry, identity="shop")


@pytest.mark.parametrize("renewed", [False, True])
async def test_who_has_lost_the_answer_of_a_settling_says_it_again_and_is_told_the_same(
    registry: Registry, renewed: bool
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", client=client)
    one, _ = await window(registry), await window(registry)
    await reported(registry, "T1", "T2", client=client, number=2)
    held = await _settle(registry, one)
    assert isinstance(held, Assignment)
    if renewed:
        again = await registry.renew(A, T1, held.token, now=at(5), timeout_s=9)
        assert again is not None
        held = again
    before, then = registry.generation(), await only(registry)
    assert await _settle(registry, one, now=at(7)) == held
    assert await _settle(registry, one, "T2") is Denial.GONE
    assert registry.generation() == before
    assert await only(registry) == then


async def test_what_was_settled_and_released_settles_no_more(registry: Registry) -> None:
    client = await registered(registry)
    one = await window(registry)
    await reported(registry, "T1", client=client)
    held = await _settle(registry, one)
    assert isinstance(held, Assignment)
    await registry.release(A, T1, held.token)
    assert await _settle(registry, one) is Denial.GONE
    await reported(registry, "T1", client=client, number=2)
    assert await _settle(registry, one) is Denial.GONE
    await assigned(registry, "T1")
    assert await _settle(registry, one) is Denial.GONE


async def test_a_settling_that_is_denied_leaves_the_reservation_open(registry: Registry) -> None:
    client = await registered(registry)
    one = await window(registry)
    await reported(registry, in_window("T1", clean=False), client=client)
    assert await _settle(registry, one) is Denial.NOT_READY
    await reported(registry, "T1", client=client, number=2)
    assert (await only(registry)).opening_windows == 1
    assert isinstance(await _settle(registry, one), Assignment)


async def _settle(
    registry: Registry,
    one: Reservation,
    tab: str = "T1",
    *,
    identity: str | None = None,
    now: Instant = T0,
) -> Assignment | Denial:
    asked = request(identity=identity)
    return await registry.settle(asked, one, ContextId(tab), now=now, timeout_s=1)
