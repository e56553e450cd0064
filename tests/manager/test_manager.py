"""Acquire: what is taken is used or given back, whatever happens in between."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest

from farm.core.decide import Candidate
from farm.core.eligibility import Reason
from farm.core.model import Assignment, Client, ClientId, ContextId, Instant, LinkId
from farm.core.reservation import Denial
from farm.errors import ClientAbsentError, StaleAssignmentError
from farm.manager import Acquired, ContextHandle, NotAcquired, WorkerContextManager
from farm.manager.delivery import AppNode
from farm.manager.manager import Creation
from farm.manager.probe import AgentProbe
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.stores.memory import MemoryRegistry
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    NS,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    at,
    only,
    registered,
    reported,
    request,
)

RUN = wire.RunPlan(plan=Plan(job_id="j", attempt_id="a", name="n", steps=()))


@dataclass
class Desk:
    """A manager, its store and node, and what its agent was sent."""

    registry: MemoryRegistry
    node: AppNode
    manager: WorkerContextManager
    sent: list[wire.ToAgent]
    client: Client
    now: Instant = T0
    number: int = 0

    async def report(self, *tabs: str) -> None:
        self.number += 1
        await reported(self.registry, *tabs, client=self.client, number=self.number, now=self.now)

    def commands(self, kind: type) -> list[wire.Command]:
        commands = [m for m in self.sent if isinstance(m, wire.Command)]
        return [order for order in commands if isinstance(order.body, kind)]

    async def slots(self) -> int:
        return (await only(self.registry)).used_slots()

    async def opened(self, tab: str) -> None:
        (order,) = self.commands(wire.OpenWindow)
        value = {"window_id": "W1", "context_id": tab}
        await self.node.answered(
            A, wire.Result(command_id=order.command_id, outcome="succeeded", value=value)
        )


async def make_desk(strategy: object = None, provision_timeout_s: float = 30.0) -> Desk:
    registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)
    node, sent = AppNode(), []
    client = await registered(registry)

    async def send(message: wire.ToAgent) -> None:
        sent.append(message)
        await asyncio.sleep(0)

    await node.attach(A, LINK, send)
    ids = iter(range(1_000))
    desk: Desk
    manager = WorkerContextManager(
        context_registry=registry,
        connection_registry=registry,
        browser_window_registry=registry,
        app_node=node,
        clock=lambda: desk.now,
        new_id=lambda: f"cmd-{next(ids)}",
        task_timeout_ms=TIMEOUT_S * 1000,
        provision_timeout_s=provision_timeout_s,
        dispatch_strategy=strategy,  # type: ignore[arg-type]
    )
    desk = Desk(registry, node, manager, sent, client)
    return desk


@pytest.fixture
async def desk() -> Desk:
    return await make_desk()


async def turns(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0)


async def acquired(desk: Desk) -> ContextHandle:
    outcome = await desk.manager.try_acquire(NS, "task", auto_provision=True)
    assert isinstance(outcome, Acquired)
    return outcome.handle


async def test_an_idle_context_is_taken_without_asking_the_agent(desk: Desk) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    assert handle.assignment.context_id == "T1"
    assert desk.sent == []


async def test_a_window_is_opened_where_nothing_is_idle(desk: Desk) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(desk.manager.try_acquire(NS, "task", auto_provision=True))
        await turns(lambda: desk.commands(wire.OpenWindow))
        assert await desk.slots() == 1
        await desk.opened("T1")
        await asyncio.sleep(0)
        assert not task.done()
        await desk.report("T1")
    outcome = task.result()
    assert isinstance(outcome, Acquired)
    assert await desk.slots() == 1
    assert (await only(desk.registry)).opening_windows == 0


Story = Callable[[Desk], Awaitable[None]]


async def _refused(desk: Desk) -> None:
    (order,) = desk.commands(wire.OpenWindow)
    await desk.node.answered(A, wire.Ack(command_id=order.command_id, refused="busy"))


async def _failed(desk: Desk) -> None:
    (order,) = desk.commands(wire.OpenWindow)
    await desk.node.answered(A, wire.Result(command_id=order.command_id, outcome="failed"))


async def _says_nothing_of_it(desk: Desk) -> None:
    (order,) = desk.commands(wire.OpenWindow)
    await desk.node.answered(A, wire.Result(command_id=order.command_id, outcome="succeeded"))


async def _link_lost(desk: Desk) -> None:
    await desk.node.detach(A, LINK)


async def _link_replaced(desk: Desk) -> None:
    async def send(message: wire.ToAgent) -> None:
        raise AssertionError(message)

    await desk.node.attach(A, LinkId("link-2"), send)
    await desk.node.detach(A, LINK)


async def _agent_gone(desk: Desk) -> None:
    await desk.opened("T1")
    await asyncio.sleep(0)
    await desk.registry.remove(A, epoch=desk.client.epoch)
    await registered(desk.registry)


async def _taken_by_another(desk: Desk) -> None:
    await desk.report("T1")
    other = await desk.registry.assign(
        request("other"), A, ContextId("T1"), now=T0, timeout_s=TIMEOUT_S
    )
    assert isinstance(other, Assignment)
    await desk.registry.release(A, ContextId("T1"), other.token)
    await desk.report("T1")
    again = await desk.registry.assign(
        request("other"), A, ContextId("T1"), now=T0, timeout_s=TIMEOUT_S
    )
    assert isinstance(again, Assignment)
    await desk.opened("T1")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await desk.registry.release(A, ContextId("T1"), again.token)


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (_refused, Reason.CREATION_FAILED),
        (_failed, Reason.CREATION_FAILED),
        (_says_nothing_of_it, Reason.CREATION_FAILED),
        (_link_lost, Reason.CREATION_FAILED),
        (_link_replaced, Reason.CREATION_FAILED),
        (_agent_gone, Reason.LOST_RACE),
        (_taken_by_another, Reason.LOST_RACE),
    ],
)
async def test_what_was_reserved_is_given_back_where_nothing_comes_of_it(
    desk: Desk, story: Story, reason: Reason
) -> None:
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        task = group.create_task(desk.manager.try_acquire(NS, "task", auto_provision=True))
        await turns(lambda: desk.commands(wire.OpenWindow))
        await story(desk)
    outcome = task.result()
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.reason is reason
    assert await desk.slots() == 0


async def test_what_was_reserved_is_given_back_when_it_takes_too_long() -> None:
    desk = await make_desk(provision_timeout_s=0.01)
    outcome = await desk.manager.try_acquire(NS, "task", auto_provision=True)
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.reason is Reason.CREATION_FAILED
    assert await desk.slots() == 0


@pytest.mark.parametrize("after", range(12))
async def test_cancelled_at_any_moment_it_keeps_nothing(after: int) -> None:
    desk = await make_desk()
    begun = await desk.manager.begin(request())
    assert isinstance(begun, Creation)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(desk.manager.complete(begun))
        for turn in range(after):
            await asyncio.sleep(0)
            if turn == 4:
                await desk.opened("T1")
            if turn == 7:
                await desk.report("T1")
        task.cancel()
        if after == 0:
            # It has not taken its first step, so its owner gives the room back.
            await desk.manager.abandon(begun)
    if task.cancelled():
        assert await desk.slots() == 0
        return
    outcome = task.result()
    assert isinstance(outcome, Acquired)
    assert await outcome.handle.release()
    assert await desk.slots() == 0


async def test_nothing_is_created_where_it_has_just_failed(desk: Desk) -> None:
    outcome = await desk.manager.begin(request(), create_not_on={A})
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.clients == {A: Reason.CREATION_FAILED}
    await desk.report("T1")
    assert isinstance(await desk.manager.begin(request(), create_not_on={A}), Acquired)


class Losing:
    """Chooses the last; somebody else is always quicker, but for the first."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.desk: Desk | None = None

    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        self.asked.append([c.context_id for c in candidates])
        if len(candidates) > 1 and self.desk is not None:
            client = self.desk.registry._clients[A]
            del client.contexts[candidates[-1].context_id]  # type: ignore[attr-defined]
        return candidates[-1]


async def test_after_a_lost_assign_the_strategy_is_asked_again_over_the_rest() -> None:
    strategy = Losing()
    desk = await make_desk(strategy)
    await desk.report("T1", "T2", "T3")
    strategy.desk = desk
    handle = await acquired(desk)
    assert strategy.asked == [["T1", "T2", "T3"], ["T1", "T2"], ["T1"]]
    assert handle.assignment.context_id == "T1"


async def test_of_many_who_acquire_as_many_hold_as_there_are_slots(desk: Desk) -> None:
    await desk.report(*(f"T{n}" for n in range(10)))
    outcomes = [await desk.manager.begin(request(f"t{n}", auto_provision=False)) for n in range(10)]
    assert sum(isinstance(o, Acquired) for o in outcomes) == 2
    verdicts = [o.verdict for o in outcomes if isinstance(o, NotAcquired)]
    assert {v.reason for v in verdicts} == {Reason.AT_CAPACITY}


# The handle


async def test_a_stale_handle_neither_sends_nor_renews_nor_releases(desk: Desk) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    assert await handle.release()
    assert len(desk.commands(wire.Release)) == 1
    with pytest.raises(StaleAssignmentError):
        await handle.send("c", RUN)
    with pytest.raises(StaleAssignmentError):
        await handle.renew()
    assert not await handle.release()
    assert len(desk.commands(wire.Release)) == 1
    assert desk.commands(wire.RunPlan) == []


async def test_a_handle_sends_under_its_own_token(desk: Desk) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    await handle.send("c", RUN)
    (order,) = desk.commands(wire.RunPlan)
    token = handle.assignment.token
    assert order.context_id == "T1"
    assert order.token == wire.Token(store_epoch=token.store_epoch, counter=token.counter)


async def test_to_send_to_an_agent_that_is_away_fails_and_leaves_nothing_waiting(
    desk: Desk,
) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    await desk.node.detach(A, LINK)
    with pytest.raises(ClientAbsentError):
        await handle.send("c", RUN)
    assert not await desk.node.answered(A, wire.Result(command_id="c", outcome="succeeded"))
    assert await handle.release()


async def test_the_sweeper_releases_what_is_over_and_tells_the_agent(desk: Desk) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    desk.now = at(TIMEOUT_S - 1)
    await handle.renew()
    desk.now = at(TIMEOUT_S + 1)
    assert await desk.manager.release_expired() == 0
    desk.now = at(2 * TIMEOUT_S)
    assert await desk.manager.release_expired() == 1
    assert len(desk.commands(wire.Release)) == 1


# Delivery


async def test_a_run_outlives_its_link_and_its_answer_may_come_over_another(desk: Desk) -> None:
    await desk.report("T1")
    handle = await acquired(desk)
    sent = await handle.send("c", RUN, outlives_link=True)
    await _link_replaced(desk)
    assert not sent.answer.done()
    assert await desk.node.answered(A, wire.Result(command_id="c", outcome="succeeded"))
    assert sent.answer.done()


async def test_one_agent_does_not_answer_for_another(desk: Desk) -> None:
    sent = desk.node.expect(A, "c", outlives_link=True)
    result = wire.Result(command_id="c", outcome="succeeded")
    assert not await desk.node.answered(ClientId("b"), result)
    assert not sent.answer.done()
    assert await desk.node.answered(A, result)


async def test_an_old_link_that_closes_does_not_take_the_new_one_with_it(desk: Desk) -> None:
    await _link_replaced(desk)
    with pytest.raises(AssertionError):
        await desk.node.tell(A, wire.Ping())


# The self-test


async def test_the_probe_says_what_is_wrong_or_nothing(desk: Desk) -> None:
    probe = AgentProbe(desk.registry, desk.node, lambda: desk.now)
    async with asyncio.TaskGroup() as group:
        well = group.create_task(probe())
        await turns(lambda: desk.commands(wire.Probe))
        order = desk.commands(wire.Probe)[0]
        await desk.node.answered(A, wire.Result(command_id=order.command_id, outcome="succeeded"))
    assert well.result() is None
    async with asyncio.TaskGroup() as group:
        lost = group.create_task(probe())
        await turns(lambda: len(desk.commands(wire.Probe)) == 2)
        await desk.node.detach(A, LINK)
    assert "has gone" in str(lost.result())
    desk.now = at(WINDOW_S + 1)
    assert await probe() == "no agent is connected"


async def test_busy_is_well(desk: Desk) -> None:
    for _ in range(2):
        assert not isinstance(await desk.registry.reserve_window(A, identity=None, now=T0), Denial)
    assert await AgentProbe(desk.registry, desk.node, lambda: desk.now)() is None
    assert desk.sent == []
