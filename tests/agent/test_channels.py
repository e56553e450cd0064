"""Data channels, dialled to farms that take them, refuse them and vanish."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from agent.channels import WebSocketChannels
from agent.ports import Channel, ChannelClosed
from farm.protocol.channels import pack, unpack
from tests.agent.test_link import Handler, serving
from tests.patience import PATIENCE_S

ID = "ch_0123456789abcdef"


@asynccontextmanager
async def dialled(handler: Handler) -> AsyncIterator[Channel]:
    async with (
        serving("GET", f"/v1/agent/channels/{ID}", handler) as url,
        aiohttp.ClientSession() as session,
        WebSocketChannels(session, lambda: url).dial(ID) as channel,
    ):
        yield channel


async def test_what_is_sent_arrives_with_its_bytes_in_both_directions() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert (await socket.receive_str()) == '{"op":"a"}'
        header, payload = unpack(await socket.receive_bytes())
        await socket.send_str('{"op":"c"}')
        await socket.send_bytes(pack(header.decode(), bytes(payload)[::-1]))
        await socket.close()
        return socket

    async with dialled(echo) as channel:
        await channel.send('{"op":"a"}')
        await channel.send('{"op":"b"}', b"123")
        heard = [(text, None if p is None else bytes(p)) async for text, p in channel.receive()]
    assert heard == [('{"op":"c"}', None), (b'{"op":"b"}', b"321")]


async def test_a_channel_that_is_refused_or_leads_nowhere_is_closed() -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=404)

    with pytest.raises(ChannelClosed, match="404"):
        async with dialled(refuse):
            pass
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ChannelClosed):
            async with WebSocketChannels(session, lambda: "http://127.0.0.1:9").dial(ID):
                pass


async def test_a_farm_that_vanishes_ends_what_is_received_and_what_is_sent() -> None:
    async def vanish(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.transport is not None
        request.transport.abort()
        return socket

    async with dialled(vanish) as channel, asyncio.timeout(PATIENCE_S):
        assert [text async for text, _ in channel.receive()] == []
        with pytest.raises(ChannelClosed):
            await channel.send("{}", b"picture")


async def test_a_farm_that_sends_no_frame_of_ours_has_its_channel_closed() -> None:
    async def garble(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_bytes(b"\xff\xff\xff\xff")
        async for _ in socket:
            pass
        return socket

    async with dialled(garble) as channel:
        with pytest.raises(ChannelClosed, match="no frame of ours"):
            async for _ in channel.receive():
                pass
