"""How long an agent whose link has closed keeps what it holds."""

import pytest

from farm.core.model import ClientId, Instant, LinkId
from farm.errors import ClientAbsentError, StaleAssignmentError, StoreUnavailableError
from farm.manager import WorkerContextManager
from farm.manager.agent_news import AgentNews
from farm.manager.disconnecting import Disconnects, LeftBehind
from farm.stores.memory import MemoryClusterEvents
from tests.manager.floor import NS, Agent, Floor
from tests.manager.test_disconnect import hold
from tests.stores.pool import hello, registered


async def closes(floor: Floor, agent: Agent, disconnects: Disconnects) -> LinkId:
    link = agent.client.link
    assert link is not None
    await floor.node.detach(agent.client_id, link)
    assert await floor.registry.unlink(agent.client_id, link, now=floor.now)
    await disconnects.closed(NS, agent.client_id, link)
    return link


def disconnects_of(
    floor: Floor, manager: WorkerContextManager, grace_s: float | None
) -> Disconnects:
    return Disconnects(manager, lambda: floor.now, grace_s=grace_s)


async def test_without_grace_what_it_holds_is_released_at_once(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await hold(manager, NS, "t", "a")
    await closes(floor, agent, disconnects_of(floor, manager, 0))
    with pytest.raises(StaleAssignmentError):
        await handle.renew()
    assert "W1.a" in (await floor.client("a")).contexts


async def test_the_policy_holds_for_the_links_of_a_coordinator_that_died_and_they_are_told_of(
    floor: Floor,
) -> None:
    dead, back = await floor.agent("a", "W1.a"), await floor.agent("b", "W1.b")
    manager = floor.manager()
    of_dead, of_back = await hold(manager, NS, "t", "a"), await hold(manager, NS, "u", "b")
    events = MemoryClusterEvents(lambda: floor.now)
    begun = events.last()
    disconnects = disconnects_of(floor, manager, 0)
    left_behind = LeftBehind(
        floor.registry,
        disconnects,
        AgentNews(events),
        lambda: floor.now,
    )
    closed = [(one.client_id, one.client.link) for one in (dead, back) if one.client.link]
    for client_id, link in closed:
        assert await floor.registry.unlink(client_id, link, now=floor.now)
    await registered(floor.registry, hello("b", link="link-2"), epoch="b-1", now=floor.now)
    await left_behind([*closed, (ClientId("removed"), LinkId("l"))])
    await disconnects.sweep()
    with pytest.raises(StaleAssignmentError):
        await of_dead.renew()
    await of_back.renew()
    read = events.read(NS, begun, limit=9)
    assert read is not None
    told = [(e.kind, e.data["client_id"], e.data["reason"]) for e in read.events]
    assert told == [("agent_disconnected", "a", "disconnect")]


async def test_in_the_grace_period_its_contexts_stay_and_nobody_is_lent_or_sent_any(
    floor: Floor,
) -> None:
    agent = await floor.agent("a", "W1.a", "W2.a")
    manager = floor.manager()
    disconnects = disconnects_of(floor, manager, 5)
    handle = await hold(manager, NS, "t", "a")
    await closes(floor, agent, disconnects)
    floor.now = Instant(floor.now + 4.9)
    await disconnects.sweep()
    await handle.renew()
    assert len((await floor.client("a")).contexts) == 2
    assert await manager.acquire(NS, "u") is None
    with pytest.raises(ClientAbsentError):
        await handle.probe()
    floor.now = Instant(floor.now + 0.1)
    await disconnects.sweep()
    with pytest.raises(StaleAssignmentError):
        await handle.renew()


async def test_the_same_agent_and_epoch_may_come_back_in_it_and_go_on(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    disconnects = disconnects_of(floor, manager, 5)
    handle = await hold(manager, NS, "t", "a")
    link = await closes(floor, agent, disconnects)
    await registered(floor.registry, hello("a", link=f"{link}-again"), epoch="a-1")
    floor.now = Instant(floor.now + 6)
    await disconnects.sweep()
    await handle.renew()


async def test_unless_it_is_set_what_it_holds_is_kept_until_it_is_gone(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    disconnects = disconnects_of(floor, manager, None)
    handle = await hold(manager, NS, "t", "a")
    await closes(floor, agent, disconnects)
    floor.now = Instant(floor.now + 100)
    await disconnects.sweep()
    await handle.renew()


async def test_what_a_store_that_is_away_can_not_be_told_it_is_told_later(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    disconnects = disconnects_of(floor, manager, 0)
    handle = await hold(manager, NS, "t", "a")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("Redis is away")

    with monkeypatch.context() as patch:
        patch.setattr(floor.registry, "release_client", away)
        await closes(floor, agent, disconnects)
        with pytest.raises(StoreUnavailableError):
            await disconnects.sweep()
    await handle.renew()
    await disconnects.sweep()
    with pytest.raises(StaleAssignmentError):
        await handle.renew()
