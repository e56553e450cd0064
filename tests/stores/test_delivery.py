"""Coordinators over one Redis reach each other's agents, and say honestly how far they came."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from farm.core.commands import Answer, CommandEvidence, CommandState, Effect
from farm.core.model import ClientId, ContextId, LinkId
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.manager import ContextHandle, WorkerContextManager
from farm.manager.awaited import SentCommand
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.evidence import Admission
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.stores.ports.routes import CoordinatorId, Route
from farm.stores.redis import RedisCommandLog, RedisRegistry, RedisRoutes, connect
from tests.patience import PATIENCE_S
from tests.stores.coordinator import ANSWERS, HANGS, SENDS
from tests.stores.pool import NS, T0, WINDOW_S, A, hello, registered, reported

ROOT = Path(__file__).parents[2]
PLAN = Plan(job_id="j", attempt_id="a", name="n", steps=())
YES, NO = Answer.YES, Answer.NO
NewRegistry = Callable[[int], Awaitable[RedisRegistry]]


@dataclass(eq=False)
class Coordinator:
    """One coordinator's end of delivery, and what its agents are sent."""

    name: str
    registry: RedisRegistry
    routes: RedisRoutes
    node: AppNode
    sent: list[wire.ToAgent] = field(default_factory=list)

    async def has(self, link: str = "link-1", client_id: ClientId = A) -> None:
        async def receive(message: wire.ToAgent) -> None:
            self.sent.append(message)

        await self.node.attach(client_id, LinkId(link), receive)

    @property
    def orders(self) -> list[str]:
        return [one.command_id for one in self.sent if isinstance(one, wire.Command)]

    async def sends(
        self, command_id: str = "c", *, outlives_link: bool = False, here: bool = False
    ) -> SentCommand:
        return await self.node.send(
            A,
            command(command_id, wire.Probe()),
            outlives_link=outlives_link,
            admission=Admission(namespace=NS),
            here=here,
        )

    async def evidence(self, command_id: str = "c") -> CommandEvidence:
        found = (await self.node.answers(NS, command_id)).evidence
        assert found is not None
        return found


@pytest.fixture
async def registry(new_redis_registry: NewRegistry) -> RedisRegistry:
    return await new_redis_registry(1)


@asynccontextmanager
async def coordinators(
    registry: RedisRegistry, *names: str, word_within_s: float = 5.0, lease_s: float = 30.0
) -> AsyncIterator[list[Coordinator]]:
    made = []
    for name in names:
        routes = RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)
        relay = Relay(routes, word_within_s=word_within_s)
        node = AppNode(commands=RedisCommandLog(registry), relay=relay, clock=lambda: T0)
        made.append(Coordinator(name=name, registry=registry, routes=routes, node=node))
        await routes.renew(())
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loops = [group.create_task(one.node.run()) for one in made]
        yield made
        for loop in loops:
            loop.cancel()


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


# One process, several coordinators


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


# Routes and boxes


async def test_the_last_to_claim_a_link_holds_it_until_it_gives_that_one_up(
    registry: RedisRegistry,
) -> None:
    one, two = (RedisRoutes(registry, coordinator=CoordinatorId(n)) for n in ("one", "two"))
    await one.claim(A, LinkId("1"))
    await two.claim(A, LinkId("2"))
    await one.give_up(A, LinkId("1"))
    await one.renew([(A, LinkId("1"))])
    assert await one.route(A) == Route(coordinator=two.coordinator, link=LinkId("2"))
    await two.give_up(A, LinkId("2"))
    assert await one.route(A) is None
    await one.renew([(A, LinkId("1"))])
    assert await two.route(A) == Route(coordinator=one.coordinator, link=LinkId("1"))
    await one.claim(A, LinkId("3"))
    await one.give_up(A, LinkId("1"))
    assert await two.route(A) == Route(coordinator=one.coordinator, link=LinkId("3"))


async def test_a_coordinator_without_a_lease_has_no_links_and_gets_no_letters(
    registry: RedisRegistry,
) -> None:
    there = RedisRoutes(registry, coordinator=CoordinatorId("there"), lease_s=1.0)
    over = RedisRoutes(registry, coordinator=CoordinatorId("over"), lease_s=0.0)
    await there.claim(ClientId("b"), LinkId("1"))
    await over.claim(A, LinkId("1"))
    assert await there.route(A) is None
    assert await over.is_there(there.coordinator)
    assert not await there.is_there(over.coordinator)
    assert not await there.post(over.coordinator, "letter")
    await there.post_others("letter")
    assert await registry.redis.exists(f"{registry.tag}:mail:over") == 0
    # It clears away once it has been there for a lease itself.
    async with asyncio.timeout(PATIENCE_S):
        while list(await registry.redis.hkeys(f"{registry.tag}:coordinators")) != ["there"]:
            await there.renew(())
    assert list(await registry.redis.hkeys(f"{registry.tag}:routes")) == ["b"]
    await there.leave()
    assert await registry.redis.exists(f"{registry.tag}:routes") == 0


async def test_letters_are_read_once_and_in_order_and_a_box_is_bounded(
    registry: RedisRegistry,
) -> None:
    one = RedisRoutes(registry, coordinator=CoordinatorId("one"), box=100)
    await one.renew(())
    for n in range(1000):
        assert await one.post(one.coordinator, f"{n}")
    read: list[str] = []
    while len(read) == 0 or read[-1] != "999":
        read += await one.receive()
    # Streams are cut in whole blocks, of a hundred entries.
    assert 100 <= len(read) <= 300
    assert read == [f"{n}" for n in range(1000 - len(read), 1000)]
    assert await registry.redis.xlen(f"{registry.tag}:mail:one") == 0
    assert await one.receive() == ()


# Several processes


@asynccontextmanager
async def process(
    url: str, registry: RedisRegistry, how: str, *, lease_s: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.coordinator"),
        *(url, registry.shard, "other", how, f"{lease_s}"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await line(running) == "ready"
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def line(running: asyncio.subprocess.Process) -> str:
    assert running.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await running.stdout.readline()).decode().strip()


async def test_a_command_goes_through_another_process_and_its_result_comes_back(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, ANSWERS, lease_s=5),
        coordinators(registry, "one") as (one,),
    ):
        sent = await one.sends()
        assert await sent.answer == wire.Result(
            command_id="c", outcome="succeeded", value={"by": "c"}
        )
        evidence = await one.evidence()
        assert evidence.state is CommandState.RESULT
        assert evidence.acknowledged_at is not None


async def test_a_coordinator_killed_in_the_middle_of_a_send_leaves_it_attempted(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with process(redis_url, registry, SENDS, lease_s=5) as other:
        assert await line(other) == "of-other"
        other.kill()
        await other.wait()
    async with coordinators(registry, "one") as (one,):
        found = await one.node.answers(NS, "of-other")
    assert (found.send_attempted, found.acknowledged, found.result_retained) == (YES, NO, NO)


async def test_one_killed_in_the_middle_of_a_send_for_another_leaves_it_attempted(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, HANGS, lease_s=1) as other,
        coordinators(registry, "one", word_within_s=1.0, lease_s=1.0) as (one,),
        asyncio.TaskGroup() as group,
    ):
        sending = group.create_task(one.sends())
        assert await line(other) == "c"
        other.kill()
        sent = await sending
        # Of what may have been sent it is not said that it was not; the wait ends all the same.
        with pytest.raises(ClientAbsentError):
            await sent.answer
        found = await one.node.answers(NS, "c")
        assert (found.send_attempted, found.result_retained) == (YES, NO)
        with pytest.raises(ClientAbsentError):
            await one.sends("next")
        assert (await one.node.answers(NS, "next")).send_attempted is NO


async def test_one_that_says_nothing_in_time_sends_nothing_when_it_comes_to_itself(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, ANSWERS, lease_s=60) as other,
        coordinators(registry, "one", word_within_s=0.3, lease_s=60) as (one,),
    ):
        other.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(ClientAbsentError, match="does not answer"):
                await one.sends("late")
            assert (await one.node.answers(NS, "late")).send_attempted is NO
        finally:
            other.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            while True:  # until it is quick enough again
                try:
                    await one.sends(f"again-{asyncio.get_running_loop().time()}")
                except ClientAbsentError:
                    continue
                break
        # The first thing that it sends its agent is not what was withdrawn.
        assert (await line(other)).startswith("again-")
        assert (await one.evidence("late")).state is CommandState.WITHDRAWN


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
