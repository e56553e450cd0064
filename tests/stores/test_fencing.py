"""An agent that was asked to leave is given nothing new on its link, whatever it says of itself."""

from farm.core.model import Assignment, ContextId, DrainOrder, LinkId
from farm.core.reservation import Denial
from farm.stores.ports.registries import Registry
from tests.stores.pool import NS, TIMEOUT_S, A, assigned, at, hello, only, registered, reported
from tests.stores.pool import request as asking


async def take(registry: Registry) -> Assignment | Denial:
    return await registry.assign(
        asking("other"), A, ContextId("T1"), now=at(0), timeout_s=TIMEOUT_S
    )


async def test_a_fenced_agent_is_given_nothing_and_it_is_known_who_asked_and_since_when(
    registry: Registry,
) -> None:
    await reported(registry, "T1", client=await registered(registry))
    assert await registry.fence(A, by="anna", now=at(1))
    assert await take(registry) is Denial.NOT_READY
    assert await registry.reserve_window(A, identity=None, now=at(1)) is Denial.NOT_READY
    fenced = await only(registry)
    assert (fenced.draining, fenced.drain) == (True, DrainOrder(by="anna", since=at(1)))


async def test_an_agent_that_says_it_does_not_drain_is_fenced_all_the_same(
    registry: Registry,
) -> None:
    await reported(registry, "T1", client=await registered(registry))
    await registry.fence(A, by="anna", now=at(1))
    await registry.set_draining(A, False)
    assert await take(registry) is Denial.NOT_READY
    assert (await only(registry)).draining


async def test_what_a_fenced_agent_holds_it_goes_on_holding(registry: Registry) -> None:
    await reported(registry, "T1", client=await registered(registry))
    held = await assigned(registry)
    await registry.fence(A, by="anna", now=at(1))
    assert await registry.holds(A, held.context_id, held.token)
    renewed = await registry.renew(A, held.context_id, held.token, now=at(2), timeout_s=TIMEOUT_S)
    assert renewed is not None
    assert await registry.release(A, held.context_id, held.token)


async def test_asked_again_who_asked_first_is_kept(registry: Registry) -> None:
    await registered(registry)
    assert await registry.fence(A, by="anna", now=at(1))
    assert await registry.fence(A, by="bert", now=at(2))
    assert (await only(registry)).drain == DrainOrder(by="anna", since=at(1))


async def test_an_unknown_agent_is_not_fenced(registry: Registry) -> None:
    assert not await registry.fence(A, by="anna", now=at(1))


async def test_a_fence_is_kept_when_a_new_browser_says_hello_on_the_same_link(
    registry: Registry,
) -> None:
    await registered(registry)
    await registry.fence(A, by="anna", now=at(1))
    again = await registered(registry, epoch="browser-2", now=at(2))
    assert again.draining
    await reported(registry, "T1", client=again)
    assert await take(registry) is Denial.NOT_READY
    assert (await only(registry)).drain == DrainOrder(by="anna", since=at(1))


async def test_a_drained_agent_that_dials_again_is_fresh(registry: Registry) -> None:
    await registered(registry)
    await registry.fence(A, by="anna", now=at(1))
    again = await registered(registry, hello(link="link-2"), now=at(2))
    assert (again.draining, again.drain) == (False, None)
    await reported(registry, "T1", client=again, link=LinkId("link-2"))
    assert not isinstance(await take(registry), Denial)


async def test_a_fence_wakes_who_waits(registry: Registry) -> None:
    await registered(registry)
    before = registry.generation()
    await registry.fence(A, by="anna", now=at(1))
    await registry.changed_since(before)


async def test_an_agent_is_known_by_what_it_was_rolled_out_as(registry: Registry) -> None:
    first = await registered(registry, hello(deployment="v1"))
    assert first.deployment == "v1"
    assert first.namespaces == (NS,)
    assert (await registered(registry, hello(deployment="v2"))).deployment == "v2"
    assert (await registered(registry, hello())).deployment is None
    assert (await only(registry)).deployment is None
