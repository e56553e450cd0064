"""What the registries promise of agents and their reports, of every implementation."""

import asyncio
from dataclasses import replace

import pytest

from farm.core.model import (
    Assignment,
    Bounds,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextState,
    LinkId,
    Namespace,
    Owner,
    Window,
)
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.registries import Registry
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    METADATA,
    T0,
    T1,
    T2,
    W1,
    WINDOW_S,
    A,
    assigned,
    at,
    hello,
    only,
    registered,
    reported,
    request,
    window,
)

HERE = Bounds(left=10, top=-4, width=1280, height=800)


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
