"""Many viewers of one tab over one channel; the agent's end and the viewers' by the wire alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from farm.config import LiveSettings
from farm.core.model import Namespace
from farm.protocol.channels import pack
from farm.protocol.messages import ChannelRefused
from tests.api.live.tab import JPEG, Channel, StandInAgent, Viewer, link, page_of, viewer
from tests.api.stack import AGENT, DEFAULT, Stack, running
from tests.patience import PATIENCE_S

LOOK = {"op": "look", "width": 640, "height": 400, "fps": 60}


@pytest.fixture
async def agent(stack: Stack) -> StandInAgent:
    return await with_a_lent_tab(stack)


async def with_a_lent_tab(stack: Stack) -> StandInAgent:
    one = StandInAgent(stack)
    await one.arrive()
    await one.lend()
    return one


@asynccontextmanager
async def watching(
    stack: Stack, agent: StandInAgent, mode: str = "view", **more: str
) -> AsyncIterator[tuple[Viewer, Channel]]:
    """One viewer, and the agent's end of the channel that it causes."""
    path = await link(stack, context=agent.name, mode=mode, **more)
    async with viewer(stack, path) as one, agent.channel() as channel:
        yield one, channel


async def test_a_viewer_is_shown_what_the_agent_sends(stack: Stack, agent: StandInAgent) -> None:
    async with watching(stack, agent) as (one, channel):
        await one.says(**LOOK)
        want = await channel.hears("want")
        assert (want["width"], want["height"], want["fps"]) == (640, 480, 60)
        await channel.shows(1)
        header, jpeg = await one.picture()
        assert (header["seq"], header["page_width"], jpeg) == (1, 1280, JPEG)
        await one.says(op="shown", seq=1)
        assert (await channel.hears("took"))["seq"] == 1


async def test_nothing_is_asked_of_the_agent_until_somebody_looks(
    stack: Stack, agent: StandInAgent
) -> None:
    async with watching(stack, agent) as (one, channel):
        await one.hears("scene")
        await one.says(op="look", fps=0)
        await one.says(op="shown", seq=1)
        await one.says(**LOOK)
        assert (await channel.socket.receive_json(timeout=PATIENCE_S))["op"] == "want"


async def test_the_channel_ends_with_the_last_viewer(stack: Stack, agent: StandInAgent) -> None:
    path = await link(stack, context=agent.name)
    async with AsyncExitStack() as first, AsyncExitStack() as last:
        one = await first.enter_async_context(viewer(stack, path))
        channel = await last.enter_async_context(agent.channel())
        await one.hears("scene")
        other = await last.enter_async_context(viewer(stack, path))
        await other.hears("scene")
        assert await viewers(stack) == 2
        await first.aclose()
        assert agent.asked.empty()
        await channel.shows(1)
        await other.says(**LOOK)
        await other.picture()
        assert await viewers(stack) == 1
        await other.socket.close()
        await channel.ends()
    async with viewer(stack, path), agent.channel():
        pass  # who comes later has a channel of its own


async def viewers(stack: Stack) -> float:
    """What the metrics say."""
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as answer:
        [line] = [one for one in (await answer.text()).splitlines() if "live_viewers " in one][-1:]
    return float(line.split()[1])


async def test_a_viewer_that_never_answers_is_sent_one_picture_and_slows_nobody(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name)
    async with watching(stack, agent) as (quick, channel), viewer(stack, path) as slow:
        for one in (quick, slow):
            await one.says(**LOOK)
        await channel.hears("want")
        for seq in range(1, 30):
            await channel.shows(seq, JPEG + bytes(50_000))
            assert (await quick.picture())[0]["seq"] == seq
            await quick.says(op="shown", seq=seq)
            assert (await channel.hears("took"))["seq"] == seq
        assert (await slow.picture())[0]["seq"] == 1
        await slow.says(op="shown", seq=1)
        assert (await slow.picture())[0]["seq"] == 29  # and nothing of what was between


async def test_who_comes_later_is_shown_the_last_picture_at_once(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name)
    async with watching(stack, agent) as (first, channel):
        await first.says(**LOOK)
        await channel.shows(1)
        await first.picture()
        async with viewer(stack, path) as second:
            assert len((await second.hears("scene"))["viewers"]) == 2
            await second.says(**LOOK)
            assert (await second.picture())[0]["seq"] == 1


async def test_the_agent_is_asked_for_what_the_most_demanding_wants(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name)
    async with watching(stack, agent) as (small, channel), viewer(stack, path) as large:
        await small.says(op="look", width=320, height=200, fps=1, overlay=False)
        want = await channel.hears("want")
        assert (want["width"], want["fps"], want["overlay"]) == (320, 1, False)
        await large.says(op="look", width=1600, height=900, fps=20)
        want = await channel.hears("want")
        assert (want["width"], want["fps"], want["overlay"]) == (1600, 20, True)
        await large.socket.close()
        assert (await channel.hears("want"))["width"] == 320


@pytest.mark.parametrize("reason", ["tab_closed", "tab_crashed", "browser_lost", "task_over"])
async def test_viewers_are_told_why_there_is_no_more(
    stack: Stack, agent: StandInAgent, reason: str
) -> None:
    async with watching(stack, agent) as (one, channel):
        await channel.says(op="closed", reason=reason)
        assert (await one.hears("closed"))["reason"] == reason
        assert await one.ended() == 1000


async def test_viewers_are_told_when_the_agents_channel_breaks_off(
    stack: Stack, agent: StandInAgent
) -> None:
    async with watching(stack, agent) as (one, channel):
        await one.hears("scene")
        await channel.socket.close()
        assert (await one.hears("closed"))["reason"] == "agent_absent"


async def test_viewers_are_told_when_the_agent_refuses(stack: Stack, agent: StandInAgent) -> None:
    path = await link(stack, context=agent.name)
    async with viewer(stack, path) as one:
        asked = await agent.asked.get()
        refusal = {"channel_id": asked.channel_id, "reason": "stale_epoch", "detail": "it is over"}
        stack.live.channels.refused(AGENT, ChannelRefused.model_validate(refusal))
        closed = await one.hears("closed")
    assert (closed["reason"], closed["detail"]) == ("unavailable", "stale_epoch: it is over")


async def test_viewers_are_told_when_the_task_is_over(stack: Stack, agent: StandInAgent) -> None:
    async with watching(stack, agent) as (one, _channel):
        await one.hears("scene")
        await stack.registry.release_client(DEFAULT, AGENT, link=None)
        assert (await one.hears("closed"))["reason"] == "task_over"


async def test_a_link_that_ends_while_somebody_looks_ends_the_pictures(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name, lasts_s=1)
    async with viewer(stack, path) as one, agent.channel():
        assert (await one.hears("closed"))["reason"] == "expired"


async def test_viewers_are_told_that_the_farm_stops(stack: Stack, agent: StandInAgent) -> None:
    async with watching(stack, agent, "control") as (one, channel):
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        stack.live.sessions.hub.close()
        assert (await one.hears("closed"))["reason"] == "farm_stops"
        await channel.ends()


async def test_more_viewers_than_allowed_are_told_so(stack: Stack, agent: StandInAgent) -> None:
    path = await link(stack, context=agent.name)
    async with watching(stack, agent), AsyncExitStack() as others:
        for _ in range(4):
            one = await others.enter_async_context(viewer(stack, path))
            await one.hears("scene")
        sixth = await others.enter_async_context(viewer(stack, path))
        assert (await sixth.hears("closed"))["reason"] == "unavailable"


# Channels


async def test_a_channel_opens_once_and_for_the_agent_that_was_asked(
    stack: Stack, agent: StandInAgent
) -> None:
    _, stranger = await stack.tokens.add(scope="agent", namespace=Namespace("default"), name="s")
    path = await link(stack, context=agent.name)
    async with viewer(stack, path) as one:
        asked = await agent.asked.get()
        url = f"{stack.url}/v1/agent/channels/{asked.channel_id}"
        theirs = {"Authorization": f"Bearer {stranger}"}
        with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
            await stack.http.ws_connect(url, headers=theirs)
        async with stack.http.ws_connect(url, headers=stack.as_agent()):
            await one.hears("scene")
            with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
                await stack.http.ws_connect(url, headers=stack.as_agent())
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await stack.http.ws_connect(url, headers=stack.as_admin())


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02{}",
        b'\x00\x00\x00\x3b{"op":"frame","seq":1,"page_width":1280,"page_height":720.0}no jpeg',
        "not json",
        '{"op":"frame","seq":1,"page_width":1,"page_height":1}',
        '{"op":"want"}',
        "[" * 5000,
    ],
)
async def test_an_agent_that_sends_what_is_no_message_has_its_channel_cut(
    stack: Stack, agent: StandInAgent, frame: bytes | str
) -> None:
    async with watching(stack, agent) as (one, channel):
        if isinstance(frame, str):
            await channel.socket.send_str(frame)
        else:
            await channel.socket.send_bytes(frame)
        assert (await one.hears("closed"))["reason"] == "agent_absent"
        await channel.ends()


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00\x02{}", "[]", "\x00", '{"op":"want"}'])
async def test_a_viewer_that_says_what_means_nothing_is_let_go_and_hurts_nobody(
    stack: Stack, agent: StandInAgent, frame: bytes | str
) -> None:
    path = await link(stack, context=agent.name)
    async with watching(stack, agent) as (good, channel), viewer(stack, path) as bad:
        for _ in range(5):
            if isinstance(frame, str):
                await bad.socket.send_str(frame)
            else:
                await bad.socket.send_bytes(frame)
        assert await bad.ended() == 1008
        await good.says(**LOOK)
        await channel.shows(1)
        assert (await good.picture())[0]["seq"] == 1


# Control


def click(x: float = 0.5) -> dict[str, object]:
    return {"kind": "mouse", "act": "down", "x": x, "y": 0.5, "button": "left"}


async def test_input_reaches_the_agent_from_who_is_in_control_only(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name, mode="control", name="other")
    async with watching(stack, agent, "control", name="anna") as (anna, channel):
        you = (await anna.hears("scene"))["you"]
        assert you.startswith("anna-")
        await anna.says(op="input", act=click())
        assert "take over first" in (await anna.hears("refused"))["why"]
        await channel.says(op="control", phase="human", by=you)
        assert (await anna.hears("scene", phase="human"))["by"] == you
        async with viewer(stack, path) as other:
            assert (await other.hears("scene", phase="human"))["by"] == you
            await other.says(op="input", act=click(0.1))
            assert (await other.hears("refused"))["why"] == f"{you} is in control"
            await anna.says(op="input", act=click(0.2))
            said = await channel.hears("input")
        assert (said["act"]["x"], said["by"]) == (0.2, you)


async def test_a_link_for_looking_lets_nobody_act(stack: Stack, agent: StandInAgent) -> None:
    async with watching(stack, agent) as (one, channel):
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.says(op="input", act=click())
        assert "looking only" in (await one.hears("refused"))["why"]
        await one.says(op="ask", action="take_over")
        assert "looking only" in (await one.hears("refused"))["why"]
    assert stack.acts.wanted == []


async def test_what_a_viewer_wants_of_the_job_is_asked_for_in_its_name(
    stack: Stack, agent: StandInAgent
) -> None:
    async with watching(stack, agent, "control") as (one, channel):
        you = (await one.hears("scene"))["you"]
        await one.says(op="ask", action="take_over")
        await one.says(op="ask", action="hand_back")
        await channel.hears("let_go")
        stack.acts.refuse_with = "automation has control"
        await one.says(op="ask", action="resume")
        assert (await one.hears("refused"))["why"] == "automation has control"
    assert stack.acts.wanted == [("take_over", you), ("hand_back", you), ("resume", you)]


async def test_a_dropped_file_goes_to_the_agent_with_its_bytes(
    stack: Stack, agent: StandInAgent
) -> None:
    async with watching(stack, agent, "control") as (one, channel):
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.says(op="input", act={"kind": "drop", "x": 0, "y": 0, "name": "a.txt"})
        assert "bytes" in (await one.hears("refused"))["why"]
        text = '{"op":"input","act":{"kind":"drop","x":0,"y":0,"name":"a.txt"}}'
        await one.socket.send_bytes(pack(text, b"hello"))
        said = await channel.hears("input")
        assert (said["act"]["name"], said["bytes"]) == ("a.txt", b"hello")


async def test_who_vanishes_in_control_lets_go_at_once_and_leaves_after_a_while(
    stack: Stack, agent: StandInAgent
) -> None:
    async with watching(stack, agent, "control") as (one, channel):
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.socket.close()
        await channel.hears("let_go")
        assert (await channel.hears("leave"))["by"] == you
        await channel.ends()


async def test_who_comes_back_in_time_is_in_control_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = LiveSettings(grace_s=600)
    async with AsyncExitStack() as open_:
        stack = await open_.enter_async_context(running(tmp_path, live_settings=patient))
        agent = await with_a_lent_tab(stack)
        path = await link(stack, context=agent.name, mode="control")
        one = await open_.enter_async_context(viewer(stack, path))
        channel = await open_.enter_async_context(agent.channel())
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.socket.close()
        await channel.hears("let_go")
        async with viewer(stack, path) as again:
            scene = await again.hears("scene", phase="human")
            assert (scene["you"], scene["by"]) == (you, you)
            loop = asyncio.get_running_loop()
            before = loop.time
            monkeypatch.setattr(loop, "time", lambda: before() + 601)
            await asyncio.sleep(0)  # nothing is to happen
            await again.says(op="input", act=click())
            said = await channel.socket.receive_json(timeout=PATIENCE_S)
            assert said["op"] == "input"


# The wall


async def test_the_wall_tells_which_tabs_there_are_and_when_that_changes(
    stack: Stack, agent: StandInAgent
) -> None:
    async with viewer(stack, "/v1/live", **stack.as_admin()) as wall:
        [tab] = (await wall.hears("tabs"))["tabs"]
        assert (tab["context"], tab["label"], tab["client_id"]) == (agent.name, "W1 · T1", AGENT)
        await stack.registry.release_client(DEFAULT, AGENT, link=None)
        assert (await wall.hears("tabs"))["tabs"] == []


async def test_workers_are_listed_with_what_they_are_watched_as(
    stack: Stack, agent: StandInAgent
) -> None:
    async with stack.http.get(f"{stack.url}/v1/workers", headers=stack.as_admin()) as answer:
        [worker] = (await answer.json())["items"]
    assert worker["live"] == agent.name
    assert page_of(agent).endswith("@agent-1")
