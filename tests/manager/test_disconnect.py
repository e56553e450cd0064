"""What a host may do when it sees a client go: it releases, and it is asked to."""

from dataclasses import replace
from typing import Any

import pytest

from farm.core.model import Client, LinkId, Namespace, Owner
from farm.errors import CollaboratorMissingError, StaleAssignmentError
from farm.manager import ContextHandle, WorkerContextManager
from tests.manager.floor import NS, Floor, named
from tests.manager.test_acquiring import Plain


async def hold(manager: WorkerContextManager, namespace: str, task: str, on: str) -> ContextHandle:
    handle = await manager.acquire(namespace, task, affinity_client_id=on)
    assert handle is not None
    assert handle.assignment.client_id == on
    return handle


async def test_exactly_that_clients_assignments_in_that_namespace_are_released(
    floor: Floor,
) -> None:
    both: Any = (NS, Namespace("other"))
    a = await floor.agent("a", "W1.a", "W2.a", "W3.a", namespaces=both)
    await floor.agent("b", "X1.a", namespaces=both)
    manager = floor.manager()
    gone = [await hold(manager, NS, t, "a") for t in ("t1", "t2")]
    others = [await hold(manager, "other", "t3", "a"), await hold(manager, NS, "t4", "b")]
    before = await floor.client("a")
    assert await manager.on_client_disconnect(NS, "a") == 2
    after = await floor.client("a")
    assert set(after.contexts) == set(before.contexts)
    assert after.windows == before.windows
    assert await floor.used() == 2
    assert a.windows.keys() == after.windows.keys()
    for handle in gone:
        with pytest.raises(StaleAssignmentError):
            await handle.renew()
    for handle in others:
        await handle.renew()
    assert await manager.on_client_disconnect(NS, "a") == 0
    assert await manager.on_client_disconnect(NS, "nobody") == 0


async def test_what_a_person_owns_is_left_alone(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await hold(manager, NS, "t", "a")
    agent.contexts[handle.assignment.context_id] = named("W1.a", owner=Owner.USER)
    await agent.report()
    assert await manager.on_client_disconnect(NS, "a") == 0
    await handle.renew()


async def test_of_a_link_that_is_no_longer_the_current_one_nothing_is_released(
    floor: Floor,
) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    await hold(manager, NS, "t", "a")
    old = agent.client.link
    assert old is not None
    again = replace(agent.client, link=LinkId("link-again"))
    found = await floor.registry.register(
        again, epoch_name="a-1", highest_token=None, now=floor.now
    )
    assert isinstance(found, Client)
    assert await manager.on_client_disconnect(NS, "a", link=old) == 0
    await floor.registry.unlink(agent.client_id, LinkId("link-again"), now=floor.now)
    assert await manager.on_client_disconnect(NS, "a", link=old) == 0
    assert await manager.on_client_disconnect(NS, "a", link="link-again") == 1


async def test_nothing_is_attached_and_so_nothing_released_by_itself(floor: Floor) -> None:
    """The contexts of an agent that is away stay, and what they are lent to goes on holding."""
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await hold(manager, NS, "t", "a")
    assert agent.client.link is not None
    await floor.registry.unlink(agent.client_id, agent.client.link, now=floor.now)
    await handle.renew()
    assert (await floor.client()).contexts
    assert await manager.acquire(NS, "other") is None


async def test_a_registry_that_cannot_do_it_in_one_step_is_named(floor: Floor) -> None:
    plain = Plain(floor.registry)
    manager = floor.manager(context_registry=plain, connection_registry=plain)
    with pytest.raises(CollaboratorMissingError, match="context_registry"):
        await manager.on_client_disconnect(NS, "a")
