"""What is run over a link: reported, drained, released, confirmed."""

import asyncio
from pathlib import Path

import pytest

from agent.machine.events import LinkDown
from farm.core.job_states import JobState
from farm.protocol import messages as wire
from tests.api.agent_ends import (
    A,
    Dialled,
    Served,
    agent,
    begun,
    client,
    dialling,
    served,
    serving,
    succeeded,
    tab,
    way,
)
from tests.jobs.farm import until
from tests.patience import PATIENCE_S

__all__ = ["agent", "served", "way"]


async def test_an_assignment_that_ended_while_the_agent_was_away_is_released(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    token = wire.Token(store_epoch=1, counter=7)
    await agent.link.send(wire.Report(epoch_number=1, number=1, contexts=(tab(token),)))
    await until(lambda: agent.heard(wire.Command))
    order = agent.heard(wire.Command)[0]
    assert (order.context_id, order.token, order.body.kind) == ("T1", token, "release")


async def test_a_release_is_told_once_however_often_its_token_is_still_reported(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    for number in (1, 2, 3):
        old = wire.Token(store_epoch=1, counter=7 if number < 3 else 8)
        await agent.link.send(wire.Report(epoch_number=1, number=number, contexts=(tab(old),)))
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    tokens = [order.token for order in agent.heard(wire.Command)]
    assert [token.counter for token in tokens if token is not None] == [7, 8]


async def test_a_draining_agent_is_given_nothing(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    for number, because in enumerate(("", "low_disk: 9 bytes are free"), start=1):
        report = wire.Report(epoch_number=1, number=number, draining=True, draining_because=because)
        await agent.link.send(report)
        async with asyncio.timeout(PATIENCE_S):
            while (known := await client(served)).draining_because != because or not known.draining:
                await asyncio.sleep(0.005)
    assert await served.farm.waits(await served.farm.submit()) == "draining"


async def test_a_job_that_waits_for_a_slot_begins_once_one_is_announced(
    served: Served, agent: Dialled
) -> None:
    welcome = await agent.greeted(capacity=wire.Capacity(max_windows=2))
    assert welcome.capacity.max_concurrency is None
    job_id = await served.farm.submit()
    assert await served.farm.waits(job_id) == "capacity_unannounced"
    await agent.link.send(wire.CapacityAnnounced(max_concurrency=2))
    await until(lambda: agent.heard(wire.Command))
    assert (await client(served)).capacity.max_concurrency == 2


async def test_a_job_goes_over_the_wire_and_its_result_is_confirmed(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await begun(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    attempt_id = run.body.plan.attempt_id
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    events = wire.Events(
        command_id=run.command_id, attempt_id=attempt_id, token=run.token, entries=(entry,)
    )
    await agent.link.send(events)
    await until(lambda: agent.heard(wire.Stored))
    assert agent.heard(wire.Stored)[0] == wire.Stored(command_id=run.command_id, seq=1)
    await agent.link.send(succeeded(run, seq=1))
    await until(lambda: agent.heard(wire.Stored)[-1].done)
    assert (await served.farm.job(job_id)).state is JobState.SUCCEEDED
    await agent.link.send(succeeded(run, seq=1))
    await until(lambda: agent.heard(wire.Stored)[-1].refused)
    assert agent.heard(wire.Stored)[-1].done


@pytest.mark.parametrize("ended", [False, True])
async def test_an_agent_that_tells_of_a_run_nobody_looks_after_is_to_say_anew_what_it_runs(
    served: Served, agent: Dialled, ended: bool
) -> None:
    await agent.greeted()
    job_id, run = await begun(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    live = served.farm.live.of_job(job_id)
    assert live is not None
    live.move()
    await until(lambda: served.farm.live.of_job(job_id) is None)
    attempt_id = run.body.plan.attempt_id
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    events = wire.Events(
        command_id=run.command_id, attempt_id=attempt_id, token=run.token, entries=(entry,)
    )
    await agent.link.send(succeeded(run, seq=0) if ended else events)
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="1"))
    await until(lambda: agent.count(LinkDown) or agent.heard(wire.Ping))
    assert (agent.heard(wire.Ping), agent.heard(wire.Stored)) == ([], [])


async def test_a_result_before_what_it_rests_on_ends_the_link_and_not_the_job(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await begun(served, agent)
    await agent.link.send(succeeded(run, seq=3))
    await until(lambda: agent.count(LinkDown))
    assert (await served.farm.job(job_id)).state is JobState.RUNNING


async def test_what_cannot_be_stored_is_not_confirmed_and_ends_the_link(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await begun(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    served.farm.database.away = True
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    await agent.link.send(
        wire.Events(
            command_id=run.command_id,
            attempt_id=run.body.plan.attempt_id,
            token=run.token,
            entries=(entry,),
        )
    )
    await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Stored) == []
    served.farm.database.away = False
    running = wire.Running(
        command_id=run.command_id,
        attempt_id=run.body.plan.attempt_id,
        context_id="T1",
        token=run.token,
        epoch="browser-1",
    )
    await agent.greeted(running=(running,))
    await agent.link.send(succeeded(run, seq=0))
    await until(lambda: agent.heard(wire.Stored))
    await served.farm.state(job_id, "succeeded")


async def test_a_command_the_agent_cannot_read_is_refused_by_its_link(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    sent = served.farm.node.expect(A, "strange", outlives_link=False)
    link = next(iter(served.links._links))
    await link._socket.send('{"op":"command","command_id":"strange","body":{"kind":"dance"}}')
    async with asyncio.timeout(PATIENCE_S):
        answer = await sent.answer
    assert isinstance(answer, wire.Ack)
    assert answer.refused == "not_understood"
    await link._socket.send('{"op":"sing"}')
    await link._socket.send("garbage")
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))


@pytest.mark.parametrize(("grace_s", "kept"), [(0, False), (1000, True), (None, True)])
async def test_what_an_agent_holds_is_released_when_its_link_closes_or_kept_for_its_grace(
    tmp_path: Path, grace_s: float | None, kept: bool
) -> None:
    async with serving(tmp_path, grace_s=grace_s) as served, dialling(served.url) as agent:
        await agent.greeted()
        job_id, run = await begun(served, agent)
        await agent.hang_up()
        async with asyncio.timeout(PATIENCE_S):
            while (await client(served)).link is not None:
                await asyncio.sleep(0.005)
        entry = wire.Running(
            command_id=run.command_id,
            attempt_id=run.body.plan.attempt_id if isinstance(run.body, wire.RunPlan) else "",
            context_id="T1",
            token=run.token or wire.Token(store_epoch=0, counter=0),
            epoch="browser-1",
        )
        await agent.greeted(running=(entry,))
        window = wire.WindowReport(window_id="W1")
        report = wire.Report(
            epoch_number=1, number=1, windows=(window,), contexts=(tab(run.token),)
        )
        await agent.link.send(report)
        await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
        await until(lambda: agent.heard(wire.Ping))
        ended = [m.body.kind for m in agent.heard(wire.Command) if m.token == run.token]
        assert ended == (["run"] if kept else ["run", "release"])
        # What was released is not taken for lost: its agent is to say what became of it.
        assert (await served.farm.job(job_id)).state is JobState.RUNNING
        await agent.link.send(succeeded(run, seq=0))
        await served.farm.state(job_id, "succeeded")
