"""Commands to agents whose link another coordinator holds."""

import asyncio
from collections.abc import Callable

import pytest

from farm.core.commands import CommandState, Effect
from farm.core.model import ClientId, ContextId, LinkId
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.manager import ContextHandle, WorkerContextManager
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisCommandLog, RedisRegistry, RedisRoutes, connect
from tests.patience import PATIENCE_S
from tests.stores.coordinators import coordinators, registry
from tests.stores.pool import NS, T0, WINDOW_S, A, hello, registered, reported

__all__ = ["registry"]


PLAN = Plan(job_id="j", attempt_id="a", name="n", steps=())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


async def handle(registry: RedisRegistry, node: AppNode) -> ContextHandle:
    """Hold the tab of an agent that is registered and has reported."""
    client = await registered(registry, hello())
    await reported(registry, "T1", client=client)
    manager = WorkerContextManager(
        context_registry=registry,
        connection_registry=registry,
        app_node=node,
        clock=lambda: T0,
    )
    held = await manager.acquire(NS, "t")
    assert held is not None
    return held


async def test_what_is_to_be_sent_from_here_is_sent_from_nowhere_else(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        with pytest.raises(ClientAbsentError):
            await one.sends(here=True)
        assert two.orders == []
        assert (await one.evidence()).state is CommandState.WITHDRAWN


async def test_nor_is_it_answered_from_elsewhere(registry: RedisRegistry) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await one.has("link-1")
        mine = await one.sends("mine", outlives_link=True, here=True)
        other = await one.sends("other", outlives_link=True)
        await two.has("link-2")
        for sent in (mine, other):  # in this order, so that the first has been read with the second
            result = wire.Result(command_id=sent.command_id, outcome="succeeded")
            assert not await two.node.answered(A, result)
        await asyncio.wait_for(other.answer, PATIENCE_S)
        assert not mine.answer.done()
        one.node.forget(mine)


async def test_an_agent_linked_elsewhere_is_commanded_and_answers_with_the_same_evidence(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        held = await handle(registry, one.node)
        sent = await held.run(PLAN, effect=Effect.ONCE)
        assert two.orders == [sent.command_id]
        assert not sent.acknowledged
        assert await two.node.answered(A, wire.Ack(command_id=sent.command_id))
        await until(lambda: sent.acknowledged)
        result = wire.Result(command_id=sent.command_id, outcome="succeeded", value={"n": 1})
        assert await two.node.answered(A, result)
        assert await held.wait(sent) == result
        seen = [await one.evidence(sent.command_id), await two.evidence(sent.command_id)]
        assert seen[0] == seen[1]
        assert seen[0].state is CommandState.RESULT
        assert seen[0].context_id == ContextId("T1")
        kept = await held.result(sent.command_id)
        assert kept is not None
        assert kept.value == {"n": 1}
        # Its release and what is told go the same way.
        await held.cancel(sent)
        assert await held.release()
        await until(lambda: len(two.sent) == 3)
        assert two.sent[1] == wire.Cancel(command_id=sent.command_id)
        assert isinstance(two.sent[2], wire.Command)
        assert two.sent[2].body == wire.Release()
        assert one.sent == []


async def test_what_leaves_no_evidence_is_sent_through_another_coordinator_too(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        sent = await one.node.send(A, command("c", wire.Probe()))
        assert two.orders == ["c"]
        result = wire.Result(command_id="c", outcome="succeeded")
        assert await two.node.answered(A, result)
        assert await sent.answer == result


async def test_a_stale_handle_sends_nothing_to_another_coordinator_either(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        held = await handle(registry, one.node)
        await held.release()
        await until(lambda: two.sent)
        with pytest.raises(StaleAssignmentError):
            await held.run(PLAN)
        assert len(two.sent) == 1


async def test_a_refusal_comes_back_too(registry: RedisRegistry) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        sent = await one.sends()
        refusal = wire.Ack(command_id="c", refused="busy")
        assert await two.node.answered(A, refusal)
        assert await sent.answer == refusal
        assert (await one.evidence()).reason == "busy"


async def test_to_who_has_a_link_nowhere_nothing_is_sent_and_that_is_known(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        with pytest.raises(ClientAbsentError):
            await one.sends()
        with pytest.raises(ClientAbsentError):
            await one.node.tell(A, wire.Ping())
        assert (await two.evidence()).state is CommandState.WITHDRAWN


async def test_a_coordinator_whose_link_has_just_closed_says_so(registry: RedisRegistry) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.routes.claim(A, LinkId("link-1"))
        with pytest.raises(ClientAbsentError, match="not connected"):
            await one.sends()
        assert (await one.evidence()).state is CommandState.WITHDRAWN


async def test_what_does_not_outlive_its_link_fails_when_that_closes_elsewhere(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two", lease_s=2.0) as (one, two):
        await two.has()
        short, long = await one.sends("short"), await one.sends("long", outlives_link=True)
        await two.node.detach(A, LinkId("link-1"))
        with pytest.raises(ClientAbsentError):
            await short.answer
        assert not long.answer.done()
        assert (await one.evidence("short")).state is CommandState.SEND_ATTEMPTED


async def test_a_result_finds_who_waits_over_whatever_coordinator_the_agent_comes_back(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two", "three") as (one, two, three):
        await two.has()
        sent = await one.sends(outlives_link=True)
        await two.node.detach(A, LinkId("link-1"))
        await three.has("link-2")
        result = wire.Result(command_id="c", outcome="succeeded")
        # Nobody it knows of waits: the agent keeps the result until it is told to forget it.
        assert not await three.node.answered(A, result)
        assert await sent.answer == result
        assert (await three.evidence()).state is CommandState.RESULT
        await one.node.tell(A, wire.Stored(command_id="c", done=True))
        await until(lambda: three.sent)


async def test_a_signal_to_an_agent_linked_elsewhere_is_known_to_have_been_given(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        await one.node.signal(A, wire.Drain(deadline_s=1.0))
        assert two.sent == [wire.Drain(deadline_s=1.0)]


async def test_a_signal_that_can_not_be_given_is_known_not_to_have_been(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two", word_within_s=0.5) as (one, two):
        with pytest.raises(ClientAbsentError, match="not connected"):
            await one.node.signal(A, wire.Drain())
        await two.routes.claim(A, LinkId("link-1"))
        with pytest.raises(ClientAbsentError, match="not connected"):
            await one.node.signal(A, wire.Drain())
        await one.routes.claim(A, LinkId("link-1"))
        await RedisRoutes(registry, coordinator=CoordinatorId("mute"), lease_s=30).claim(
            A, LinkId("link-1")
        )
        with pytest.raises(ClientAbsentError, match="does not answer"):
            await one.node.signal(A, wire.Drain())
        assert two.sent == []


async def test_each_coordinator_knows_which_other_one_holds_a_link(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        for coordinator in (one, two):
            with pytest.raises(ClientAbsentError):
                await coordinator.node.held_by(A)
        await two.has()
        assert await one.node.held_by(A) == "two"
        assert await two.node.held_by(A) is None


async def test_an_agent_that_comes_over_is_reached_where_it_is_now(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has("link-1")
        lost = await one.sends("first")
        await one.has("link-2")
        with pytest.raises(ClientAbsentError):
            await lost.answer
        # The old link's end, late, does not take the new one with it.
        await two.node.detach(A, LinkId("link-1"))
        await one.sends("second")
        await two.sends("third")
        assert (two.orders, one.orders) == (["first"], ["second", "third"])


async def test_one_agent_does_not_answer_for_another_through_a_coordinator(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        await two.has("link-b", ClientId("b"))
        sent = await one.sends()
        false = wire.Result(command_id="c", outcome="failed")
        assert not await two.node.answered(ClientId("b"), false)
        true = wire.Result(command_id="c", outcome="succeeded")
        assert await two.node.answered(A, true)
        assert await sent.answer == true


async def test_a_letter_nobody_can_read_is_left_and_the_next_is_read(
    registry: RedisRegistry,
) -> None:
    async with coordinators(registry, "one", "two") as (one, two):
        await two.has()
        assert await one.routes.post(CoordinatorId("two"), '{"kind": "song"}')
        await one.sends()
        assert two.orders == ["c"]


async def test_after_redis_lost_its_memory_the_links_are_put_back(registry: RedisRegistry) -> None:
    async with coordinators(registry, "one", "two", lease_s=0.5) as (one, two):
        await two.has()
        names = [name async for name in registry.redis.scan_iter(f"{registry.tag}*")]
        await registry.redis.delete(*names)
        with pytest.raises(StoreUnavailableError):
            await one.sends()
        await registry.open(store_epoch=2)
        for coordinator in (one, two):
            await coordinator.routes.renew(coordinator.node.links())
        await one.sends()
        assert two.orders == ["c"]


def test_a_relay_without_evidence_is_refused() -> None:
    with pytest.raises(CollaboratorMissingError, match="commands"):
        AppNode(relay=Relay.__new__(Relay))


async def test_two_registries_of_one_redis_see_one_log(
    redis_url: str, registry: RedisRegistry
) -> None:
    other = RedisRegistry(connect(redis_url), presence_window_s=WINDOW_S, shard=registry.shard)
    await other.open(store_epoch=1)
    async with coordinators(registry, "one") as (one,):
        await one.has()
        await one.sends()
        assert await RedisCommandLog(other).find(NS, "c", now=T0) == await one.evidence()
    await other.redis.aclose()
