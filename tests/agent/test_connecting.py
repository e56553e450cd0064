"""By what the agent dials, and what becomes of its messages where requests go astray."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent import connecting
from agent import link as agent_link
from agent.connecting import Connection, Dial, longpoll, websocket
from agent.link import FarmLink
from agent.machine.events import Heard, LinkUp
from agent.ports import LinkRefused
from farm.api.poll_socket import PollSocket
from farm.api.request_state import Principal
from farm.core.model import Namespace
from farm.protocol import messages as wire
from farm.protocol.polling import Exchange, Opened
from tests.agent.test_link import serving, until
from tests.patience import PATIENCE_S

PING = wire.Ping(nonce="n").model_dump_json()


class Farm:
    """The farm's end of one session, on a network that loses requests and answers."""

    def __init__(self) -> None:
        bearer = Principal(token_id="t", scope="agent", namespace=Namespace("default"))
        self.socket = PollSocket(bearer, silence_s=1000)
        self.requests = 0
        self.upgrades = 0
        self.ended = False

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            self.upgrades += 1
            return web.Response(status=400)
        if request.method == "DELETE":
            self.ended = True
            return web.Response(status=204)
        if request.path.endswith("/poll"):
            opened = Opened(session="s", wait_s=1.0, silence_s=10.0)
            return web.Response(text=opened.model_dump_json(), status=201)
        self.requests += 1
        turn = self.requests % 3
        if turn == 1:
            return web.Response(status=502)  # the request is lost
        given = await self.socket.exchange(Exchange.model_validate_json(await request.read()))
        if turn == 2:
            return web.Response(status=504)  # its answer is lost
        return web.Response(text=given.model_dump_json())


@asynccontextmanager
async def farm_at() -> AsyncIterator[tuple[Farm, str]]:
    farm = Farm()
    async with serving("*", "/v1/{rest:.*}", farm.serve) as url:
        yield farm, url


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_AGAIN_S", 0.001)
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(agent_link, "_LONGEST_WAIT_S", 0.001)


async def test_messages_are_neither_lost_nor_doubled_where_requests_and_answers_are_lost() -> None:
    sent = [f"message {number}" for number in range(30)]
    async with (
        farm_at() as (farm, url),
        aiohttp.ClientSession() as session,
        asyncio.timeout(PATIENCE_S),
    ):
        async with longpoll(session, url) as connection:
            for text in sent:
                await connection.send(text)
                await farm.socket.send(f"answer to {text}")
            there, here = farm.socket.texts(), connection.texts()
            assert [await anext(there) for _ in sent] == sent
            assert [await anext(here) for _ in sent] == [f"answer to {text}" for text in sent]
            await connection.send("the last")
        assert await anext(there) == "the last"
        assert farm.ended


async def test_a_session_that_the_farm_does_not_know_any_more_is_over() -> None:
    async def gone(request: web.Request) -> web.StreamResponse:
        opened = Opened(session="s", wait_s=1.0, silence_s=10.0)
        if request.path.endswith("/poll"):
            return web.Response(text=opened.model_dump_json(), status=201)
        return web.Response(status=404)

    async with (
        serving("*", "/v1/{rest:.*}", gone) as url,
        aiohttp.ClientSession() as session,
        asyncio.timeout(PATIENCE_S),
        longpoll(session, url) as connection,
    ):
        assert [text async for text in connection.texts()] == []
        assert connection.closed


async def test_who_waits_for_messages_is_let_go_when_handing_in_says_that_it_is_over() -> None:
    waits = asyncio.Event()

    async def half_dead(request: web.Request) -> web.StreamResponse:
        opened = Opened(session="s", wait_s=50.0, silence_s=10.0)
        if request.path.endswith("/poll"):
            return web.Response(text=opened.model_dump_json(), status=201)
        if b'"wait_s":50.0' in await request.read():
            waits.set()
            await asyncio.Event().wait()
        return web.Response(status=404)

    async with (
        serving("*", "/v1/{rest:.*}", half_dead) as url,
        aiohttp.ClientSession() as session,
        asyncio.timeout(PATIENCE_S),
        longpoll(session, url) as connection,
        asyncio.TaskGroup() as group,
    ):
        reading = group.create_task(anext(connection.texts(), None))
        await waits.wait()
        await connection.send("are you there?")
        assert await reading is None


async def test_where_a_websocket_is_refused_requests_are_tried() -> None:
    told: list[Any] = []
    async with (
        farm_at() as (farm, url),
        aiohttp.ClientSession() as session,
        asyncio.TaskGroup() as group,
    ):
        link = FarmLink(session, url, dials=(websocket, longpoll))
        task = group.create_task(link.run(told.append))
        await until(lambda: LinkUp() in told)
        await farm.socket.send(PING)
        await until(lambda: Heard(wire.Ping(nonce="n")) in told)
        assert farm.upgrades == 1
        task.cancel()


async def test_a_wrong_token_ends_it_whatever_is_dialled_by() -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    async with serving("*", "/v1/{rest:.*}", refuse) as url, aiohttp.ClientSession() as session:
        with pytest.raises(LinkRefused, match="does not know"):
            await FarmLink(session, url, dials=(websocket, longpoll)).run(lambda _: None)


class Line:
    """A connection that says so much and ends."""

    closed = False

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    async def texts(self) -> AsyncIterator[str]:
        for text in self._texts:
            yield text

    async def send(self, text: str) -> None:
        """Take it."""


def way(name: str, dialled: list[str], says: Callable[[], str | None]) -> Dial:
    @asynccontextmanager
    async def dial(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Connection]:
        dialled.append(name)
        if (text := says()) is None:
            raise OSError("no way")
        yield Line(*filter(None, [text]))

    return dial


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        (PING, PING, ["first"] * 6),
        (None, PING, ["first", "second", "second", "second"]),
        ("", PING, ["first", "second", "second", "second"]),
        (None, None, ["first", "second", "first", "second"]),
    ],
    ids=["the first works", "it is refused", "it says nothing", "none works"],
)
async def test_what_works_is_dialled_first(
    first: str | None, second: str | None, order: list[str]
) -> None:
    dialled: list[str] = []
    ways = (way("first", dialled, lambda: first), way("second", dialled, lambda: second))
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        link = FarmLink(session, "http://farm.test", dials=ways)
        task = group.create_task(link.run(lambda _: None))
        await until(lambda: len(dialled) >= len(order))
        task.cancel()
    assert dialled[: len(order)] == order
