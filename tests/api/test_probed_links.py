"""Links whose agents are asked: by a ping of the wire, which the runtime answers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode
from prometheus_client import CollectorRegistry

from agent.machine.events import Heard, LinkDown
from farm.core.model import Client
from farm.core.pools import Exclusion
from farm.core.reachability import LOST_AFTER
from farm.manager.probing import Prober
from farm.protocol import messages as wire
from tests.api.agent_ends import Dialled, Served, client, dialling, serving
from tests.jobs.farm import WINDOW_S, until
from tests.patience import PATIENCE_S

LOST, PROBATION = Exclusion.REACHABILITY_LOST, Exclusion.OPENING_PROBATION


class Patient(Prober):
    """Hears of a link only when it is let."""

    let: asyncio.Event

    async def opened(self, *args: Any) -> None:
        await self.let.wait()
        await super().opened(*args)


@dataclass
class Probed:
    """A farm that asks its agents, as often as the test says."""

    served: Served
    prober: Patient

    async def known(self) -> Client:
        found: Client = await client(self.served)
        return found

    async def comes_to_be(self, excluded: Exclusion | None) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.known()).excluded is not excluded:
                await asyncio.sleep(0.002)


@pytest.fixture
async def probed(tmp_path: Path) -> AsyncIterator[Probed]:
    async with serving(tmp_path, probation=True) as served:
        prober = Patient(
            served.farm.registry,
            served.farm.clock,
            coordinator="farm",
            window_s=WINDOW_S,
            metrics=CollectorRegistry(),
            end=served.links.end,
        )
        prober.let = asyncio.Event()
        prober.let.set()
        served.farm.node._watcher = prober
        yield Probed(served, prober)


@pytest.fixture
async def agent(probed: Probed) -> AsyncIterator[Dialled]:
    async with dialling(probed.served.url) as agent:
        yield agent


def questions(agent: Dialled) -> list[str]:
    """Those it has been asked; other pings answer its heartbeats."""
    return [p.nonce for p in agent.heard(wire.Ping) if p.nonce.startswith("probe-")]


async def answer(agent: Dialled, number: int = 1) -> None:
    """Answer the last question, once there have been so many."""
    await until(lambda: len(questions(agent)) >= number)
    await agent.link.send(wire.Pong(nonce=questions(agent)[-1]))


async def test_it_is_welcomed_before_it_is_asked_and_chosen_only_when_its_runtime_has_answered(
    probed: Probed, agent: Dialled
) -> None:
    await agent.greeted()
    await until(lambda: agent.heard(wire.Ping))
    said = [event.message for event in agent.told if isinstance(event, Heard)]
    assert isinstance(said[0], wire.Welcome)
    # A heartbeat says that it is there, but not that it hears.
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="1"))
    await until(lambda: len(agent.heard(wire.Ping)) > 1)
    assert (await probed.known()).excluded is PROBATION
    await agent.link.send(wire.Pong(nonce="1"))
    await answer(agent)
    await probed.comes_to_be(None)


async def test_one_that_comes_back_is_given_nothing_before_it_is_asked(
    probed: Probed, agent: Dialled
) -> None:
    """Its tab is there already: between its registration and the question nothing is placed."""
    await agent.greeted()
    await answer(agent)
    await probed.comes_to_be(None)
    reports = wire.ContextReport(context_id="T1", window_id="W1")
    await agent.link.send(
        wire.Report(
            epoch_number=1,
            number=1,
            windows=(wire.WindowReport(window_id="W1"),),
            contexts=(reports,),
        )
    )
    probed.prober.let.clear()
    await agent.hang_up()
    await until(lambda: agent.count(LinkDown))
    await agent.greeted()
    job_id = await probed.served.farm.submit()
    known = await probed.known()
    assert (known.link is not None, len(known.contexts)) == (True, 1)
    assert known.excluded is PROBATION
    await probed.served.farm.state(job_id, "queued")
    assert known.assignments == {}
    probed.prober.let.set()
    await answer(agent, 2)
    await until(lambda: agent.heard(wire.Command))
    assert (await probed.known()).excluded is None


async def test_a_socket_that_is_open_is_no_answer(probed: Probed, agent: Dialled) -> None:
    await agent.greeted()
    await answer(agent)
    await probed.comes_to_be(None)
    for number in range(LOST_AFTER + 1):
        await probed.prober.round()
        # What the library answers by itself, and what only one direction needs.
        await agent.link.send(wire.Heartbeat(epoch_number=1, nonce=f"{number}"))
    assert (await probed.known()).excluded is LOST
    assert (await probed.known()).link is not None
    await answer(agent, 1 + LOST_AFTER + 1)
    await probed.comes_to_be(None)


async def test_an_answer_renews_the_presence_of_an_agent_that_says_nothing_else(
    probed: Probed, agent: Dialled
) -> None:
    await agent.greeted()
    await probed.served.farm.passes(WINDOW_S * 0.9)
    await answer(agent)
    await probed.comes_to_be(None)
    assert (await probed.known()).seen_at == probed.served.farm.now


async def test_an_agent_that_is_given_up_on_an_open_socket_has_it_ended_and_comes_again(
    probed: Probed, agent: Dialled
) -> None:
    first = await agent.greeted()
    connection: Any = agent.link._connection
    socket = connection._socket
    await probed.served.farm.passes(WINDOW_S * 2.25 + 0.1)
    await probed.served.farm.dispatcher.agents.sweep_gone()
    assert await client(probed.served) is None
    assert not socket.closed
    await probed.prober.end_unregistered()
    await until(lambda: agent.count(LinkDown))
    assert socket.close_code == WSCloseCode.TRY_AGAIN_LATER
    again = await agent.greeted()
    assert again.epoch_number > first.epoch_number
    await answer(agent, 2)
    await probed.comes_to_be(None)


async def test_a_link_whose_agent_has_another_is_ended(probed: Probed, agent: Dialled) -> None:
    await agent.greeted()
    await until(lambda: agent.heard(wire.Ping))
    known = await probed.known()
    assert known.link is not None
    await probed.served.farm.registry.unlink(known.client_id, known.link, now=known.seen_at)
    await probed.prober.end_unregistered()
    await until(lambda: agent.count(LinkDown))
