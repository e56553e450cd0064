"""The evidence of commands that are sent by a handle, and what it answers."""

import asyncio

import pytest

from farm.core.commands import Answer, CommandEvidence, CommandState, Effect
from farm.core.model import LinkId
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    ConflictError,
    NotFoundError,
    StaleAssignmentError,
)
from farm.manager import ContextHandle
from farm.manager.awaited import SentCommand
from farm.manager.delivery import AppNode
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import Plan
from tests.manager.floor import NS, Agent, Floor

PLAN = Plan(job_id="j", attempt_id="a", name="n", steps=())
RUN = wire.RunPlan(plan=PLAN)
YES, NO, EXPIRED, UNKNOWN = Answer.YES, Answer.NO, Answer.EXPIRED, Answer.UNKNOWN


async def hold(floor: Floor) -> tuple[Agent, ContextHandle]:
    agent = await floor.agent("a", "W1.a")
    handle = await floor.manager().acquire(NS, "t")
    assert handle is not None
    return agent, handle


async def of(handle: ContextHandle, command_id: str) -> CommandEvidence:
    evidence = (await handle.evidence(command_id)).evidence
    assert evidence is not None
    return evidence


async def answered(floor: Floor, sent: SentCommand, answer: wire.Ack | wire.Result) -> None:
    assert await floor.node.answered(sent.client_id, answer)


async def test_a_command_is_followed_from_its_admission_to_its_payload(floor: Floor) -> None:
    _, handle = await hold(floor)
    sent = await handle.run(PLAN, effect=Effect.ONCE, reconcilable=True)
    found = await handle.evidence(sent.command_id)
    assert (found.send_attempted, found.acknowledged, found.result_retained) == (YES, NO, NO)
    assert (found.effect_can_be_established, found.repeat_is_safe) == (YES, NO)
    assert await handle.result(sent.command_id) is None
    floor.passes(1)
    await answered(floor, sent, wire.Ack(command_id=sent.command_id))
    floor.passes(1)
    value = {"pages": [1, 2]}
    result = wire.Result(command_id=sent.command_id, outcome="succeeded", value=value)
    await answered(floor, sent, result)
    assert await handle.wait(sent) == result
    evidence = await of(handle, sent.command_id)
    held = handle.assignment
    assert (evidence.client_id, evidence.context_id, evidence.token) == (
        held.client_id,
        held.context_id,
        held.token,
    )
    assert evidence.acknowledged_at == evidence.admitted_at + 1
    assert evidence.settled_at == evidence.admitted_at + 2
    kept = await handle.result(sent.command_id)
    assert kept is not None
    assert (kept.outcome, kept.value, kept.reason, kept.cut) == ("succeeded", value, None, False)


async def test_that_a_send_is_attempted_is_noted_before_anything_goes_out(floor: Floor) -> None:
    agent, handle = await hold(floor)
    seen: list[CommandState] = []

    async def look(message: wire.ToAgent) -> None:
        seen.append((await of(handle, "c")).state)

    await floor.node.attach(agent.client_id, LinkId("looks"), look)
    await handle.send("c", RUN)
    assert seen == [CommandState.SEND_ATTEMPTED]


async def test_who_dies_in_the_middle_of_a_send_leaves_it_attempted(floor: Floor) -> None:
    agent, handle = await hold(floor)
    sending = asyncio.Event()

    async def hang(message: wire.ToAgent) -> None:
        sending.set()
        await asyncio.Event().wait()

    await floor.node.attach(agent.client_id, LinkId("hangs"), hang)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(handle.send("c", RUN))
        await sending.wait()
        task.cancel()
    assert (await handle.evidence("c")).send_attempted is YES


async def test_to_send_to_who_is_not_there_is_withdrawn_and_was_not_sent(floor: Floor) -> None:
    agent, handle = await hold(floor)
    assert agent.client.link is not None
    await floor.node.detach(agent.client_id, agent.client.link)
    with pytest.raises(ClientAbsentError):
        await handle.send("c", RUN, effect=Effect.ONCE)
    found = await handle.evidence("c")
    assert (found.send_attempted, found.result_retained) == (NO, YES)
    assert found.repeat_is_safe is YES
    result = await handle.result("c")
    assert result is not None
    assert (result.outcome, result.reason) == ("withdrawn", "client_absent")


async def test_a_link_that_takes_nothing_leaves_an_attempt_that_failed(floor: Floor) -> None:
    agent, handle = await hold(floor)

    async def full(message: wire.ToAgent) -> None:
        raise ClientAbsentError("has stopped reading")

    await floor.node.attach(agent.client_id, LinkId("full"), full)
    with pytest.raises(ClientAbsentError):
        await handle.send("c", RUN)
    evidence = await of(handle, "c")
    assert (evidence.state, evidence.reason) == (CommandState.ERROR, "client_absent")
    assert evidence.send_attempted_at is not None


async def test_a_stale_handle_admits_nothing(floor: Floor) -> None:
    _, handle = await hold(floor)
    sent = await handle.run(PLAN)
    await handle.release()
    with pytest.raises(StaleAssignmentError):
        await handle.send("c", RUN)
    with pytest.raises(StaleAssignmentError):
        await handle.probe()
    with pytest.raises(StaleAssignmentError):
        await handle.cancel(sent)
    with pytest.raises(NotFoundError):
        await handle.evidence("c")
    assert (await handle.evidence(sent.command_id)).send_attempted is YES


async def test_an_id_is_used_once_and_the_first_goes_on_undisturbed(floor: Floor) -> None:
    agent, handle = await hold(floor)
    sent = await handle.send("c", RUN)
    with pytest.raises(ConflictError):
        await handle.send("c", RUN)
    assert len(agent.commands(wire.RunPlan)) == 1
    await answered(floor, sent, wire.Result(command_id="c", outcome="succeeded"))
    assert sent.answer.done()


@pytest.mark.parametrize(
    ("answer", "outcome", "reason", "again"),
    [
        (wire.Ack(command_id="c", refused="busy"), "refused", "busy", YES),
        (wire.Result(command_id="c", outcome="timed_out"), "timed_out", "timed_out", NO),
        (
            wire.Result(
                command_id="c",
                outcome="failed",
                failure=Failure(reason=Reason.INTERNAL, detail="why"),
            ),
            "failed",
            "internal",
            NO,
        ),
    ],
    ids=["refused", "timed out", "failed"],
)
async def test_what_did_not_go_well_is_retained_with_its_reason(
    floor: Floor, answer: wire.Ack | wire.Result, outcome: str, reason: str, again: Answer
) -> None:
    _, handle = await hold(floor)
    sent = await handle.send("c", RUN, effect=Effect.ONCE)
    await answered(floor, sent, answer)
    result = await handle.result("c")
    assert result is not None
    assert (result.outcome, result.reason) == (outcome, reason)
    found = await handle.evidence("c")
    assert (found.acknowledged, found.repeat_is_safe) == (YES, again)


async def test_a_payload_that_is_too_large_is_named_and_not_retained(floor: Floor) -> None:
    _, handle = await hold(floor)
    sent = await handle.send("c", RUN)
    large = wire.Result(command_id="c", outcome="succeeded", value={"text": "x" * 1000})
    await answered(floor, sent, large)
    assert await handle.wait(sent) == large
    result = await handle.result("c")
    assert result is not None
    assert (result.outcome, result.cut, result.value) == ("succeeded", True, None)
    assert result.size > 1000


async def test_what_is_retained_no_more_has_expired_and_what_never_was_is_not_found(
    floor: Floor,
) -> None:
    _, handle = await hold(floor)
    for n in range(4):
        await handle.send(f"c{n}", wire.Probe(), effect=Effect.ONCE)
    found = await handle.evidence("c0")
    assert found.evidence is None
    assert {found.send_attempted, found.acknowledged, found.result_retained} == {EXPIRED}
    assert {found.effect_can_be_established, found.repeat_is_safe} == {UNKNOWN}
    with pytest.raises(NotFoundError):
        await handle.result("c0")
    assert (await handle.evidence("c3")).send_attempted is YES
    floor.passes(1000)
    assert (await handle.evidence("c3")).send_attempted is EXPIRED
    with pytest.raises(NotFoundError, match="'never'"):
        await handle.evidence("never")


async def test_that_a_context_is_idle_again_answers_nothing(floor: Floor) -> None:
    agent, handle = await hold(floor)
    sent = await handle.run(PLAN, effect=Effect.ONCE)
    before = await handle.evidence(sent.command_id)
    await handle.release()
    await agent.report()
    assert await floor.manager().acquire(NS, "next") is not None
    assert await handle.evidence(sent.command_id) == before


async def test_a_probe_and_a_cancellation_go_to_the_agent_of_the_context(floor: Floor) -> None:
    agent, handle = await hold(floor)
    told: list[wire.ToAgent] = []

    async def send(message: wire.ToAgent) -> None:
        told.append(message)

    await floor.node.attach(agent.client_id, LinkId("next"), send)
    probe, run = await handle.probe(), await handle.run(PLAN)
    await handle.cancel(run)
    order, _, cancel = told
    assert isinstance(order, wire.Command)
    assert (order.context_id, order.body) == (handle.assignment.context_id, wire.Probe())
    assert cancel == wire.Cancel(command_id=run.command_id)
    handle.forget(probe)
    assert not await floor.node.answered(
        agent.client_id, wire.Result(command_id=probe.command_id, outcome="succeeded")
    )


async def test_what_is_created_has_its_evidence_too(floor: Floor) -> None:
    agent = await floor.agent("a")
    handle = await floor.manager().acquire(NS, "t", auto_provision=True)
    assert handle is not None
    (order,) = agent.commands(wire.OpenWindow)
    result = await handle.result(order.command_id)
    assert result is not None
    assert result.value == {"context_id": handle.assignment.context_id}


async def test_without_a_log_there_is_no_evidence_and_that_is_said(floor: Floor) -> None:
    floor.node = AppNode()
    _, handle = await hold(floor)
    sent = await handle.run(PLAN)
    with pytest.raises(CollaboratorMissingError, match="commands"):
        await handle.evidence(sent.command_id)
