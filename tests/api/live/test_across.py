"""Viewers and channels that come to another coordinator than the one that shows the tab."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from farm.core.model import ClientId, Namespace
from farm.errors import ClientAbsentError
from farm.protocol.channels import pack
from farm.protocol.live import MAX_DROP_BYTES
from farm.protocol.messages import ChannelRefused
from farm.stores.memory import MemoryRegistry, PostOffice
from farm.stores.ports.routes import CoordinatorId
from tests.api.live.tab import JPEG, Channel, StandInAgent, Viewer, link, page_of, viewer
from tests.api.live.test_watching import LOOK, click
from tests.api.stack import AGENT, DEFAULT, LIVE, PRESENT_S, Stack, running

HOLDER = CoordinatorId("holder")


@dataclass(kw_only=True)
class Farm:
    """Three coordinators that share agents and tokens."""

    holder: Stack
    """Has the link of the agent."""
    other: Stack
    third: Stack
    agent: StandInAgent
    office: PostOffice

    def kill(self, name: str) -> None:
        """Let a coordinator hear and say nothing from now on."""
        self.office.leave(CoordinatorId(name))


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    registry = MemoryRegistry(store_epoch=1, presence_window_s=PRESENT_S)
    office = PostOffice()

    async def held_by(client_id: ClientId) -> CoordinatorId | None:
        return HOLDER

    async with AsyncExitStack() as several:
        made = []
        for name in ("holder", "other", "third"):
            (tmp_path / name).mkdir()
            made.append(
                await several.enter_async_context(
                    running(
                        tmp_path / name,
                        live_settings=LIVE,
                        coordinator=name,
                        registry=registry,
                        office=office,
                        held_by=None if name == HOLDER else held_by,
                    )
                )
            )
        holder, other, third = made
        agent = StandInAgent(holder, link=f"{HOLDER}/link")
        await agent.arrive()
        await agent.lend()
        yield Farm(holder=holder, other=other, third=third, agent=agent, office=office)


async def one_token(farm: Farm, at: Stack) -> None:
    """Let the agent's token at another coordinator be the one that it has come with."""
    principal = await at.tokens.principal(at.agent)
    assert principal is not None
    farm.holder.owners[AGENT] = principal.token_id


@asynccontextmanager
async def watching(
    farm: Farm, at: Stack, mode: str = "view", **more: str
) -> AsyncIterator[tuple[Viewer, Channel]]:
    """Look at one coordinator, with a link that another has made."""
    path = await link(farm.third, context=farm.agent.name, mode=mode, **more)
    async with viewer(at, path) as one, farm.agent.channel() as channel:
        yield one, channel


async def show(one: Viewer, channel: Channel) -> None:
    """See one picture, and make room for the next."""
    await one.says(**LOOK)
    assert (await channel.hears("want"))["fps"] == 60
    for seq in (1, 2, 3):
        jpeg = JPEG + bytes(200_000 * seq)
        await channel.shows(seq, jpeg)
        header, shown = await one.picture()
        assert (header["seq"], shown == jpeg) == (seq, True)
        await one.says(op="shown", seq=seq)
        assert (await channel.hears("took"))["seq"] == seq


async def test_a_viewer_at_any_coordinator_is_shown_what_the_agent_sends(farm: Farm) -> None:
    async with watching(farm, farm.other) as (one, channel):
        await show(one, channel)


async def test_an_agent_may_dial_its_channel_at_any_coordinator(farm: Farm) -> None:
    await one_token(farm, farm.other)
    path = await link(farm.holder, context=farm.agent.name)
    async with viewer(farm.holder, path) as one, farm.agent.channel(farm.other) as channel:
        await show(one, channel)
        await one.socket.close()
        await channel.ends()


async def test_the_viewer_at_one_and_the_channel_at_another_meet_at_a_third(farm: Farm) -> None:
    await one_token(farm, farm.third)
    path = await link(farm.other, context=farm.agent.name)
    async with viewer(farm.other, path) as one, farm.agent.channel(farm.third) as channel:
        await show(one, channel)
        await channel.says(op="closed", reason="tab_closed")
        assert (await one.hears("closed"))["reason"] == "tab_closed"
        assert await one.ended() == 1000


async def test_a_viewer_that_never_answers_is_sent_one_picture_across_too(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name)
    async with watching(farm, farm.holder) as (quick, channel), viewer(farm.other, path) as slow:
        for one in (quick, slow):
            await one.says(**LOOK)
            await one.hears("scene")
        await channel.hears("want")
        for seq in range(1, 30):
            await channel.shows(seq, JPEG + bytes(50_000))
            assert (await quick.picture())[0]["seq"] == seq
            await quick.says(op="shown", seq=seq)
        assert (await slow.picture())[0]["seq"] == 1
        await slow.says(op="shown", seq=1)
        assert (await slow.picture())[0]["seq"] == 29  # and nothing of what was between


async def test_one_is_in_control_whichever_coordinators_the_viewers_are_at(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name, mode="control", name="anna")
    async with viewer(farm.other, path) as anna, farm.agent.channel() as channel:
        you = (await anna.hears("scene"))["you"]
        async with viewer(farm.third, path) as same, viewer(farm.holder, path) as again:
            names = [(await one.hears("scene"))["you"] for one in (same, again)]
            assert names == [f"{you}-2", f"{you}-3"]
            await channel.says(op="control", phase="human", by=you)
            for one in (anna, same, again):
                assert (await one.hears("scene", phase="human"))["by"] == you
            for one in (same, again):
                await one.says(op="input", act=click(0.1))
                assert (await one.hears("refused"))["why"] == f"{you} is in control"
            await anna.says(op="input", act=click(0.2))
            said = await channel.hears("input")
            assert (said["act"]["x"], said["by"]) == (0.2, you)
            await anna.says(op="ask", action="hand_back")
            await channel.hears("let_go")
    assert [act for act, _ in farm.holder.acts.wanted] == ["hand_back"]
    assert farm.other.acts.wanted == []


async def test_what_a_viewer_does_keeps_its_order_and_a_dropped_file_comes_whole(
    farm: Farm,
) -> None:
    await one_token(farm, farm.third)
    path = await link(farm.other, context=farm.agent.name, mode="control")
    async with viewer(farm.other, path) as one, farm.agent.channel(farm.third) as channel:
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        places = [number / 1000 for number in range(500)]
        for x in places:
            await one.says(op="input", act=click(x))
        file = bytes(range(256)) * (MAX_DROP_BYTES // 256)
        text = '{"op":"input","act":{"kind":"drop","x":0,"y":0,"name":"a.bin"}}'
        await one.socket.send_bytes(pack(text, file))
        assert [(await channel.hears("input"))["act"]["x"] for _ in places] == places
        said = await channel.hears("input")
        assert (said["act"]["name"], said["bytes"] == file) == ("a.bin", True)


async def test_who_comes_back_at_another_coordinator_is_in_control_still(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name, mode="control")
    async with viewer(farm.other, path) as one, farm.agent.channel() as channel:
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.socket.close()
        await channel.hears("let_go")
        async with viewer(farm.third, path) as back:
            scene = await back.hears("scene")
            assert (scene["you"], scene["by"]) == (you, you)


async def test_who_was_in_control_has_a_while_to_come_back_when_its_coordinator_is_killed(
    farm: Farm,
) -> None:
    path = await link(farm.third, context=farm.agent.name, mode="control")
    async with viewer(farm.other, path) as one, farm.agent.channel() as channel:
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        farm.kill("other")
        await channel.hears("let_go")
        assert (await channel.hears("leave"))["by"] == you
        await channel.ends()


async def test_the_wall_is_the_same_everywhere_and_each_of_its_tabs_is_seen(farm: Farm) -> None:
    wall = await link(farm.third)
    async with viewer(farm.other, wall) as one:
        [tab] = (await one.hears("tabs"))["tabs"]
    assert tab["context"] == farm.agent.name
    secret = wall.partition("?")[2]
    async with (
        viewer(farm.other, f"{page_of(farm.agent)}?{secret}") as one,
        farm.agent.channel() as channel,
    ):
        assert (await one.hears("scene"))["mode"] == "view"
        await show(one, channel)


async def test_a_tab_has_so_many_viewers_wherever_they_are(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name)
    async with watching(farm, farm.other), AsyncExitStack() as others:
        for at in (farm.third, farm.holder, farm.other, farm.third):
            one = await others.enter_async_context(viewer(at, path))
            await one.hears("scene")
        for at in (farm.other, farm.holder):
            more = await others.enter_async_context(viewer(at, path))
            assert (await more.hears("closed"))["reason"] == "unavailable"


async def test_the_agent_is_watched_no_more_once_the_last_viewers_coordinator_is_killed(
    farm: Farm,
) -> None:
    async with watching(farm, farm.other) as (one, channel):
        await one.hears("scene")
        farm.kill("other")
        await channel.ends()
    assert farm.holder.live.sessions.hub.count() == farm.holder.bridges.count() == 0


async def test_viewers_are_told_to_dial_again_when_who_showed_the_tab_is_killed(
    farm: Farm,
) -> None:
    async with watching(farm, farm.other) as (one, _channel):
        await one.hears("scene")
        farm.kill("holder")
        closed = await one.hears("closed")
        assert closed["reason"] == "elsewhere"
        assert "holder" in closed["detail"]
        await one.ended()


async def test_viewers_are_told_when_where_the_channel_came_to_is_killed(farm: Farm) -> None:
    await one_token(farm, farm.third)
    path = await link(farm.other, context=farm.agent.name)
    async with viewer(farm.other, path) as one, farm.agent.channel(farm.third):
        await one.hears("scene")
        farm.kill("third")
        assert (await one.hears("closed"))["reason"] == "agent_absent"


async def test_viewers_are_told_that_the_one_that_shows_the_tab_stops(farm: Farm) -> None:
    async with watching(farm, farm.other) as (one, channel):
        await one.hears("scene")
        farm.holder.live.sessions.hub.close()
        assert (await one.hears("closed"))["reason"] == "farm_stops"
        await channel.ends()


async def test_viewers_are_told_that_the_one_they_came_to_stops(farm: Farm) -> None:
    async with watching(farm, farm.other) as (one, channel):
        await one.hears("scene")
        await farm.other.bridges.close("it is stopping")
        assert "it is stopping" in (await one.hears("closed"))["detail"]
        await channel.ends()


async def test_viewers_dial_again_when_the_agent_has_gone_to_another_coordinator(
    farm: Farm,
) -> None:
    async with watching(farm, farm.holder) as (one, channel):
        await one.hears("scene")
        moved = StandInAgent(farm.holder, link="other/link")
        await moved.arrive(attach=False)
        assert (await one.hears("closed"))["reason"] == "elsewhere"
        await channel.ends()


async def test_viewers_are_told_that_the_agent_refuses_wherever_they_are(farm: Farm) -> None:
    path = await link(farm.other, context=farm.agent.name)
    async with viewer(farm.other, path) as one:
        asked = await farm.agent.asked.get()
        refusal = {"channel_id": asked.channel_id, "reason": "stale_epoch", "detail": "it is over"}
        farm.holder.live.channels.refused(AGENT, ChannelRefused.model_validate(refusal))
        assert (await one.hears("closed"))["detail"] == "stale_epoch: it is over"


# Who may (P16, P17)


async def test_a_channel_opens_across_once_and_for_the_agent_that_was_asked(farm: Farm) -> None:
    path = await link(farm.holder, context=farm.agent.name)
    async with viewer(farm.holder, path) as one:
        asked = await farm.agent.asked.get()
        url = f"{farm.other.url}/v1/agent/channels/{asked.channel_id}"
        http, headers = farm.other.http, farm.other.as_agent()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
            await http.ws_connect(url, headers=headers)  # the token of another agent
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await http.ws_connect(url)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await http.ws_connect(url, headers=farm.other.as_admin())
        await one_token(farm, farm.other)
        async with http.ws_connect(url, headers=headers):
            await one.hears("scene")
            with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
                await http.ws_connect(url, headers=headers)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
            await http.ws_connect(url[:-1] + "-", headers=headers)


async def test_whether_a_viewer_may_look_is_seen_where_it_comes(farm: Farm) -> None:
    page = page_of(farm.agent)
    _, secret = await farm.other.tokens.add(scope="admin", namespace=Namespace("other"), name="o")
    for headers, status in (
        ({}, "401"),
        (farm.other.as_agent(), "403"),
        ({"Authorization": f"Bearer {secret}"}, "404"),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError, match=status):
            await farm.other.http.ws_connect(farm.other.url + page, headers=headers)
    assert farm.other.bridges.count() == 0


async def test_a_link_for_looking_lets_nobody_act_across_and_ends_in_time(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name, lasts_s=2)
    async with viewer(farm.other, path) as one, farm.agent.channel() as channel:
        you = (await one.hears("scene"))["you"]
        await channel.says(op="control", phase="human", by=you)
        await one.hears("scene", phase="human")
        await one.says(op="input", act=click())
        assert "looking only" in (await one.hears("refused"))["why"]
        assert (await one.hears("closed"))["reason"] == "expired"


async def test_the_pictures_end_with_the_task_wherever_they_are_seen(farm: Farm) -> None:
    async with watching(farm, farm.other) as (one, _channel):
        await one.hears("scene")
        await farm.holder.registry.release_client(DEFAULT, AGENT, link=None)
        assert (await one.hears("closed"))["reason"] == "task_over"


async def test_what_means_nothing_is_counted_against_a_viewer_across_too(farm: Farm) -> None:
    path = await link(farm.third, context=farm.agent.name)
    async with watching(farm, farm.holder), viewer(farm.other, path) as bad:
        for _ in range(5):
            await bad.socket.send_str("[]")
        assert await bad.ended() == 1008


async def test_an_agent_that_has_no_link_anywhere_is_said_to_be_absent(tmp_path: Path) -> None:
    async def held_by(client_id: ClientId) -> CoordinatorId | None:
        raise ClientAbsentError(f"agent {client_id} is not connected")

    async with running(tmp_path, held_by=held_by) as stack:
        agent = StandInAgent(stack)
        await agent.arrive(attach=False)
        await agent.lend()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await stack.http.ws_connect(stack.url + page_of(agent), headers=stack.as_admin())
