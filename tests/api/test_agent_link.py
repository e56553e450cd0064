"""The agents' link as such: what is heard on it, what ends it, and what is told of that."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from agent.machine.events import LinkDown, LinkUp
from farm.api import agent_link
from farm.manager.commands import command
from farm.protocol import messages as wire
from tests.api.agent_ends import (
    BEARER,
    MAX_FRAME,
    A,
    Dialled,
    Served,
    agent,
    begun,
    client,
    dialling,
    served,
    serving,
    tab,
    way,
)
from tests.jobs.farm import WINDOW_S, until
from tests.patience import PATIENCE_S

__all__ = ["agent", "served", "way"]


@pytest.mark.parametrize(
    "frame",
    ["", "{", "null", "[]", '{"op": "dance"}', '{"op": "report"}', '{"op": "heartbeat"}', "\u0000"],
)
async def test_frames_that_mean_nothing_are_passed_over(
    served: Served, agent: Dialled, frame: str
) -> None:
    await agent.greeted()
    await agent.raw(frame)
    connection: Any = agent.link._connection
    if hasattr(connection, "_socket"):
        await connection._socket.send_bytes(b"\x00\xff")
    await agent.raw('{"op":"heartbeat","epoch_number":1,"nonce":"n","new":[1]}')
    await until(lambda: agent.heard(wire.Ping))
    assert agent.count(LinkDown) == 0


async def test_a_frame_that_is_too_large_ends_the_link_and_nothing_else(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await agent.link.send(wire.Error(detail="x" * (MAX_FRAME + 1)))
    await until(lambda: agent.count(LinkDown))
    assert (await agent.greeted()).epoch_number == 1


async def test_before_its_hello_an_agent_is_not_listened_to(served: Served, agent: Dialled) -> None:
    await until(lambda: agent.count(LinkUp))
    with capture_logs() as logs:
        await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
        await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Ping) == []
    (broken,) = [line for line in logs if line["event"] == "link.broken"]
    assert "client_id" not in broken


async def test_one_link_is_for_one_agent(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    await agent.hello(client_id="b")
    await until(lambda: agent.count(LinkDown))
    snapshot = await served.farm.registry.snapshot(now=served.farm.now)
    assert [c.client_id for c in snapshot.clients] == ["a"]


async def test_a_silent_agent_is_not_heard_again_before_it_says_hello(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.farm.passes(WINDOW_S * 2.25 + 0.1)
    await served.farm.dispatcher.agents.sweep_gone()
    assert await client(served) is None
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="late"))
    await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Ping) == []
    assert (await agent.greeted()).epoch_number == 2


async def test_a_link_that_closes_is_noticed_at_once_and_the_agent_keeps_its_epoch(
    served: Served, agent: Dialled
) -> None:
    first = await agent.greeted()
    await agent.hang_up()
    async with asyncio.timeout(PATIENCE_S):
        while (await client(served)).link is not None:
            await asyncio.sleep(0.005)
    assert (await agent.greeted()).epoch_number == first.epoch_number
    assert (await client(served)).link is not None


async def test_an_agent_that_says_bye_is_forgotten(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    await agent.link.send(wire.Bye())
    async with asyncio.timeout(PATIENCE_S):
        while await client(served) is not None:
            await asyncio.sleep(0.005)


def news(served: Served) -> list[tuple[str, Any]]:
    """What the agent's namespace was told, and the part of it that says why."""
    found = served.farm.events.read(BEARER.namespace, served.before, limit=100)
    assert found is not None
    assert all(event.data["client_id"] == A for event in found.events)
    why = ("reason", "draining")
    return [
        (event.kind, next((event.data[key] for key in why if key in event.data), None))
        for event in found.events
    ]


async def test_who_follows_the_farm_is_told_that_an_agent_came_drains_and_said_goodbye(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await agent.link.send(wire.Report(epoch_number=1, number=1, draining=True))
    await agent.link.send(wire.Bye())
    await until(lambda: len(news(served)) == 3)
    assert news(served) == [
        ("agent_connected", None),
        ("agent_draining", True),
        ("agent_disconnected", "deregistered"),
    ]


async def test_that_a_link_closed_is_told_as_just_that_and_once(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.links.close_all()
    await until(lambda: len(news(served)) == 2)
    await served.farm.passes(100 * WINDOW_S)
    await served.farm.dispatcher.agents.sweep_gone()
    assert news(served) == [("agent_connected", None), ("agent_disconnected", "disconnect")]


async def test_that_an_agent_was_silent_for_too_long_is_told_as_a_timeout(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.farm.passes(100 * WINDOW_S)
    await served.farm.dispatcher.agents.sweep_gone()
    assert news(served) == [("agent_connected", None), ("agent_disconnected", "timeout")]


async def test_a_new_browser_on_the_same_link_is_a_new_epoch(
    served: Served, agent: Dialled
) -> None:
    assert (await agent.greeted()).epoch_number == 1
    assert (await agent.greeted(epoch="browser-2")).epoch_number == 2
    await agent.link.send(wire.Report(epoch_number=1, number=9, contexts=(tab(),)))
    await agent.link.send(wire.Heartbeat(epoch_number=2, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    assert (await client(served)).contexts == {}


async def test_an_agent_dials_a_farm_that_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        port = int(served.url.rsplit(":", 1)[1])
        dialled = dialling(served.url)
        agent = await dialled.__aenter__()
        await agent.greeted()
    await until(lambda: agent.count(LinkDown))
    async with serving(tmp_path, port) as served:
        assert (await agent.greeted()).epoch_number == 1
        await dialled.__aexit__(None, None, None)


async def test_an_agent_that_reads_nothing_is_cut_off(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    (link,) = served.links._links
    release = command("c", wire.Release())

    async def flood() -> None:
        while True:  # no turn of the loop in which anything could be sent
            await link.send(release)

    with pytest.raises(Exception, match="stopped reading"):
        await flood()


async def test_agents_that_answer_nothing_keep_nobody_from_leaving_them(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_link, "_CLOSE_S", 0.2)
    headers = {"Authorization": "Bearer good"}
    async with aiohttp.ClientSession(headers=headers) as session:
        silent = [await session.ws_connect(f"{served.url}/v1/agent") for _ in range(3)]
        await until(lambda: len(served.links._links) == len(silent))
        async with asyncio.timeout(5):
            await served.links.close_all()
        await until(lambda: not served.links._links)


async def test_nobody_hears_of_a_store_that_fails_while_a_link_closes(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await begun(served, agent)
    served.farm.database.away = True
    await agent.hang_up()
    await until(lambda: served.farm.database.failed)
    served.farm.database.away = False
    assert (await agent.greeted()).epoch_number == 1


async def test_a_session_is_for_the_token_that_has_opened_it(served: Served) -> None:
    headers = {"Authorization": "Bearer good"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{served.url}/v1/agent/poll") as opened:
            url = f"{served.url}/v1/agent/poll/{(await opened.json())['session']}"
        async with session.post(url, json={}) as answer:
            assert answer.status == 200
        served.bearer = replace(BEARER, token_id="token-2")
        for method in ("POST", "DELETE"):
            async with session.request(method, url, json={}) as answer:
                assert answer.status == 404
