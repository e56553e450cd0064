"""Whom work is routed to: namespace, task queue, kind of work and node."""

from typing import Any

from farm.core.model import Assignment, ClientId, LinkId, Namespace
from farm.core.pools import DEFAULT_QUEUE
from farm.core.reservation import Denial
from tests.stores.pool import (
    T0,
    TIMEOUT_S,
    Everything,
    hello,
    only,
    registered,
    reported,
    request,
)


async def agent(registry: Everything, name: str, **told: Any) -> None:
    """Let in an agent with idle tabs enough for each question of a test."""
    link = LinkId(f"link-{name}")
    client = await registered(registry, hello(name, link=link, **told))
    await reported(registry, *(f"T{n}" for n in range(6)), client=client, link=link)


async def taken(registry: Everything, **asks: Any) -> str | None:
    """Ask for any context, and give it back; return whose it was."""
    found = await registry.assign_first(request(**asks), now=T0, timeout_s=TIMEOUT_S)
    if found is None:
        return None
    await registry.release(found.client_id, found.context_id, found.token)
    return found.client_id


async def assign(registry: Everything, client_id: str, **asks: Any) -> Assignment | Denial:
    known = next(c for c in (await registry.snapshot(now=T0)).clients if c.client_id == client_id)
    tab = next(key for key, context in known.contexts.items() if context.lendable)
    return await registry.assign(request(**asks), known.client_id, tab, now=T0, timeout_s=TIMEOUT_S)


async def test_one_queue_name_in_two_namespaces_is_two_pools(registry: Everything) -> None:
    await agent(registry, "a", namespaces=(Namespace("one"),), task_queue="crawl")
    await agent(registry, "b", namespaces=(Namespace("two"),), task_queue="crawl")
    one, two = Namespace("one"), Namespace("two")
    assert await taken(registry, namespace=one, task_queue="crawl") == "a"
    assert await taken(registry, namespace=two, task_queue="crawl") == "b"
    for there, foreign in (("a", two), ("b", one)):
        denied = await assign(registry, there, namespace=foreign, task_queue="crawl")
        assert denied is Denial.NOT_READY


async def test_two_queues_of_one_namespace_are_two_pools(registry: Everything) -> None:
    await agent(registry, "a", task_queue="crawl")
    await agent(registry, "b", task_queue="forms")
    assert await taken(registry, task_queue="crawl") == "a"
    assert await taken(registry, task_queue="forms") == "b"
    assert await taken(registry) is None
    assert await assign(registry, "a", task_queue="forms") is Denial.NOT_READY


async def test_no_queue_on_either_side_is_the_default_one(registry: Everything) -> None:
    await agent(registry, "a", task_queue="")
    assert (await only(registry)).task_queue == DEFAULT_QUEUE
    assert await taken(registry, task_queue="") == "a"
    assert await taken(registry, task_queue=DEFAULT_QUEUE) == "a"
    assert await taken(registry) == "a"


async def test_an_agent_of_several_namespaces_is_in_the_pool_of_each_until_it_is_removed(
    registry: Everything,
) -> None:
    every = tuple(map(Namespace, ("one", "two", "three")))
    await agent(registry, "a", namespaces=every)
    assert [await taken(registry, namespace=one) for one in every] == ["a"] * 3
    await registry.remove(ClientId("a"), epoch=1)
    assert [await taken(registry, namespace=one) for one in every] == [None] * 3


async def test_a_pin_reaches_only_its_node_and_no_pin_reaches_all(registry: Everything) -> None:
    await agent(registry, "a", node="n1")
    await agent(registry, "b", node="")
    assert (await registry.snapshot(now=T0)).clients[1].node is None
    assert await taken(registry, node="n1") == "a"
    assert await taken(registry, node="n2") is None
    assert await taken(registry, node="") is None
    assert await assign(registry, "b", node="n1") is Denial.NOT_READY
    assert await assign(registry, "b", node="") is Denial.NOT_READY
    for name in ("a", "b"):
        assert isinstance(await assign(registry, name), Assignment)


async def test_an_agent_is_given_the_kinds_of_work_it_does(registry: Everything) -> None:
    await agent(registry, "a", activity_types=frozenset({"crawl", "job"}))
    assert await taken(registry, activity_type="crawl") == "a"
    assert await taken(registry, activity_type="job") == "a"
    assert await taken(registry) == "a"
    assert await taken(registry, activity_type="print") is None
    assert await assign(registry, "a", activity_type="print") is Denial.NOT_READY


async def test_an_agent_that_comes_back_to_another_queue_and_node_is_in_that_pool(
    registry: Everything,
) -> None:
    await agent(registry, "a", task_queue="crawl", node="n1")
    assert await taken(registry, task_queue="crawl", node="n1") == "a"
    link = LinkId("link-2")
    client = await registered(registry, hello("a", link=link, activity_types=frozenset({"b"})))
    await reported(registry, "T1", client=client, link=link)
    again = await only(registry)
    assert (again.task_queue, again.node) == (DEFAULT_QUEUE, None)
    assert again.activity_types == frozenset({"b"})
    assert await taken(registry, task_queue="crawl") is None
    assert await taken(registry) == "a"
    assert await taken(registry, node="n1") is None
