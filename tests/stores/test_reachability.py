"""Who is not to be chosen for now, in either store."""

import asyncio
from typing import Any

from farm.core import decide
from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ClientType,
    ContextId,
    LinkId,
    WindowId,
)
from farm.core.pools import Exclusion
from farm.core.reservation import Denial
from farm.stores.ports.reachability import Reachability
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    NS,
    T0,
    TIMEOUT_S,
    A,
    Everything,
    assigned,
    at,
    hello,
    only,
    registered,
    reported,
    request,
)

LOST, PROBATION = Exclusion.REACHABILITY_LOST, Exclusion.OPENING_PROBATION
B = ClientId("b")
LEASE_S = 10.0


async def published(
    registry: Everything, found: dict[ClientId, Exclusion], by: str = "one", now: float = 0
) -> None:
    await registry.publish_exclusions(by, found, now=at(now), lease_s=LEASE_S)


async def there(registry: Everything) -> None:
    await reported(registry, "T1", client=await registered(registry))


async def test_it_offers_them(registry: Everything) -> None:
    assert isinstance(registry, Reachability)


async def test_an_excluded_agent_is_not_chosen_by_any_way_and_what_it_holds_stays(
    registry: Everything,
) -> None:
    client = await registered(registry)
    await reported(registry, "T1", "T2", client=client)
    held = await assigned(registry, "T2")
    await published(registry, {A: LOST})
    assert (await only(registry)).excluded is LOST
    snapshot = await registry.snapshot(now=T0)
    assert list(decide.candidates(request(), snapshot)) == []
    how: dict[str, Any] = {"now": T0, "timeout_s": TIMEOUT_S}
    assert await registry.assign(request(), A, ContextId("T1"), **how) is Denial.NOT_READY
    assert await registry.assign_first(request(), **how) is None
    near = request(affinity_client_id=A)
    assert await registry.assign_first(near, **how) is None
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.NOT_READY
    assert await registry.reserve_tab(A, WindowId("W1"), now=T0) is Denial.NOT_READY
    assert await registry.holds(A, ContextId("T2"), held.token)
    assert await registry.renew(A, ContextId("T2"), held.token, **how) is not None


async def test_a_flow_is_created_on_no_excluded_agent(registry: Everything) -> None:
    room = Capacity(max_concurrency=2, max_flows=2)
    await registered(registry, hello(client_type=ClientType.CONSOLE, capacity=room))
    await published(registry, {A: PROBATION})
    assert await registry.reserve_flow(A, now=T0) is Denial.NOT_READY
    await published(registry, {})
    assert not isinstance(await registry.reserve_flow(A, now=T0), Denial)


async def test_an_agent_on_a_new_link_is_kept_out_from_the_step_on_in_which_it_registers(
    registry: Everything,
) -> None:
    """Also one that comes back in its epoch, whose contexts are there already."""
    client = await registered(registry)
    await reported(registry, "T1", "T2", client=client)
    held = await assigned(registry, "T2")
    back = hello(link="link-2", excluded=PROBATION)
    assert (await registered(registry, back)).excluded is None
    assert (await only(registry)).excluded is PROBATION
    how: dict[str, Any] = {"now": T0, "timeout_s": TIMEOUT_S}
    assert await registry.assign(request(), A, ContextId("T1"), **how) is Denial.NOT_READY
    assert await registry.assign_first(request(), **how) is None
    assert await registry.select_and_reserve(request(), now=T0) is None
    assert await registry.reserve_window(A, identity=None, now=T0) is Denial.NOT_READY
    assert await registry.holds(A, ContextId("T2"), held.token)
    # No round of anybody's ends it, and no answer on another link.
    await published(registry, {})
    generation = registry.generation()
    assert not await registry.proven(A, LINK)
    assert not await registry.proven(B, LinkId("link-2"))
    assert registry.generation() == generation
    assert await registry.exclusions(now=T0) == {A: PROBATION}
    assert await registry.proven(A, LinkId("link-2"))
    assert registry.generation() > generation
    assert not await registry.proven(A, LinkId("link-2"))
    assert (await only(registry)).excluded is None
    await assigned(registry)


async def test_on_the_link_it_had_an_agent_is_kept_out_or_not_as_before(
    registry: Everything,
) -> None:
    await registered(registry, hello(excluded=PROBATION))
    for said in (None, PROBATION):
        await registered(registry, hello(excluded=said))
        assert (await only(registry)).excluded is PROBATION
    assert await registry.proven(A, LINK)
    await registered(registry, hello(excluded=PROBATION))
    assert (await only(registry)).excluded is None
    await registered(registry, hello(excluded=PROBATION), epoch="browser-2")
    assert (await only(registry)).excluded is None


async def test_probation_ends_with_the_link_and_with_the_agent(registry: Everything) -> None:
    await registered(registry, hello(excluded=PROBATION))
    await published(registry, {A: LOST})
    assert (await only(registry)).excluded is LOST
    await published(registry, {})
    assert (await only(registry)).excluded is PROBATION
    assert await registry.unlink(A, LINK, now=T0)
    assert await registry.exclusions(now=T0) == {}
    client = await registered(registry, hello(link="link-2", excluded=PROBATION))
    await registry.remove(A, epoch=client.epoch)
    assert await registry.exclusions(now=T0) == {}
    await registered(registry, hello(link="link-3"))
    assert (await only(registry)).excluded is None
    await registered(registry, hello(link="link-4", excluded=LOST))
    assert (await only(registry)).excluded is None


async def test_one_that_is_not_let_in_is_not_put_into_probation(registry: Everything) -> None:
    await there(registry)
    other = hello(instance="another", link="link-2", excluded=PROBATION)
    assert (
        await registry.register(other, epoch_name="b", highest_token=None, now=T0) is Denial.IN_USE
    )
    assert (await only(registry)).excluded is None


async def test_what_is_published_replaces_all_that_this_coordinator_has(
    registry: Everything,
) -> None:
    await there(registry)
    await published(registry, {A: LOST})
    await published(registry, {B: LOST})
    assert (await only(registry)).excluded is None
    assert await registry.exclusions(now=T0) == {B: LOST}


async def test_publishing_nothing_restores_everybody(registry: Everything) -> None:
    await there(registry)
    await published(registry, {A: LOST, B: PROBATION})
    await published(registry, {})
    assert await registry.exclusions(now=T0) == {}
    await assigned(registry)


async def test_what_coordinators_publish_is_united(registry: Everything) -> None:
    await there(registry)
    await published(registry, {A: LOST}, by="one")
    await published(registry, {A: PROBATION, B: PROBATION}, by="two")
    assert await registry.exclusions(now=T0) == {A: LOST, B: PROBATION}
    assert (await only(registry)).excluded is LOST
    await published(registry, {}, by="one")
    assert (await only(registry)).excluded is PROBATION
    assert await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S) is None
    await published(registry, {}, by="two")
    await assigned(registry)


async def test_a_coordinator_that_has_died_excludes_nobody_for_longer_than_its_lease(
    registry: Everything,
) -> None:
    await there(registry)
    await published(registry, {A: LOST}, by="dead")
    await published(registry, {}, by="alive", now=5)
    assert (await only(registry, now=at(9.9))).excluded is LOST
    assert (await only(registry, now=at(10))).excluded is None
    assert await registry.exclusions(now=at(10)) == {}
    await assigned(registry, now=at(10))
    # Nor does it come back, when what has lapsed is cleared away.
    await published(registry, {}, by="alive", now=10)
    assert await registry.exclusions(now=at(0)) == {}


async def test_a_departed_agent_in_a_verdict_is_harmless_and_does_not_come_back(
    registry: Everything,
) -> None:
    client = await registered(registry)
    await published(registry, {A: LOST})
    await registry.remove(A, epoch=client.epoch)
    await published(registry, {A: LOST, B: LOST})
    assert (await registry.snapshot(now=T0)).clients == ()
    assert await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S) is None
    assert await registry.next_turn(NS) == 0


async def test_publishing_the_same_again_wakes_who_waits(registry: Everything) -> None:
    await published(registry, {A: LOST})
    for _ in range(2):
        generation = registry.generation()
        async with asyncio.TaskGroup() as group:
            waiter = group.create_task(registry.changed_since(generation))
            await published(registry, {A: LOST})
            async with asyncio.timeout(PATIENCE_S):
                await waiter


async def test_a_verdict_published_between_reading_and_waiting_is_not_missed(
    registry: Everything,
) -> None:
    await there(registry)
    await published(registry, {A: PROBATION})
    generation = registry.generation()
    assert await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S) is None
    await published(registry, {})
    async with asyncio.timeout(PATIENCE_S):
        await registry.changed_since(generation)
    assert isinstance(
        await registry.assign_first(request(), now=T0, timeout_s=TIMEOUT_S), Assignment
    )


async def test_thousands_are_excluded_at_once_and_each_reading_says_so(
    registry: Everything,
) -> None:
    await there(registry)
    many = {ClientId(f"agent-{n}"): PROBATION for n in range(2_500)}
    await published(registry, {**many, A: LOST})
    assert await registry.exclusions(now=T0) == {**many, A: LOST}
    assert (await only(registry)).excluded is LOST
