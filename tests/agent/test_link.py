"""The agent's link against farms that misbehave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent import connecting
from agent import link as agent_link
from agent.link import FarmLink, HttpUploads
from agent.machine.events import Heard, LinkDown, LinkUp
from agent.ports import LinkRefused, StaleAssignment, UploadRefused
from farm.protocol import messages as wire
from tests.listening import listening
from tests.patience import PATIENCE_S

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = wire.Token(store_epoch=3, counter=14)


@asynccontextmanager
async def serving(method: str, path: str, handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route(method, path, handler)
    async with listening(app) as url:
        yield url


@asynccontextmanager
async def dialling(url: str) -> AsyncIterator[tuple[FarmLink, list[object]]]:
    told: list[object] = []
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        link = FarmLink(session, url)
        task = group.create_task(link.run(told.append))
        yield link, told
        task.cancel()


async def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("status", "why"), [(401, "does not know"), (403, "scope agent")])
async def test_a_token_that_is_not_accepted_ends_it_and_says_why(status: int, why: str) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status)

    async with serving("GET", "/v1/agent", refuse) as url, aiohttp.ClientSession() as session:
        with pytest.raises(LinkRefused, match=why):
            await FarmLink(session, url).run(lambda _: None)


async def test_why_the_farm_refuses_is_logged_once_and_again_when_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(agent_link, "_LONGEST_WAIT_S", 0.001)
    dials = 0

    async def refuse(request: web.Request) -> web.StreamResponse:
        nonlocal dials
        dials += 1
        reason = "client_id_in_use" if dials < 4 else "namespace"
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(wire.Refused(reason=reason, detail="why").model_dump_json())
        await socket.close()
        return socket

    with capture_logs() as logs:
        async with serving("GET", "/v1/agent", refuse) as url, dialling(url):
            await until(lambda: dials >= 7)
    refusals = [
        (line["reason"], line["detail"]) for line in logs if line["event"] == "link.refused"
    ]
    assert refusals == [("client_id_in_use", "why"), ("namespace", "why")]


async def test_that_the_farm_has_let_us_in_and_that_the_link_is_lost_is_logged() -> None:
    async def let_in(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        welcome = wire.Welcome(
            epoch_number=3, capacity=wire.Capacity(), heartbeat_interval_s=1, window_s=4
        )
        await socket.send_str(welcome.model_dump_json())
        await socket.close()
        return socket

    with capture_logs() as logs:
        async with serving("GET", "/v1/agent", let_in) as url, dialling(url) as (_, told):
            await until(lambda: LinkDown() in told)
    said = [(line["event"], line["url"], line.get("epoch")) for line in logs if "url" in line]
    assert said[:2] == [("link.welcome", url, 3), ("link.lost", url, None)]


async def test_a_farm_that_fails_or_hangs_up_is_dialled_again() -> None:
    dials = 0

    async def fail(request: web.Request) -> web.StreamResponse:
        nonlocal dials
        dials += 1
        if dials == 1:
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.close()
        return socket

    async with serving("GET", "/v1/agent", fail) as url, dialling(url) as (_, told):
        await until(lambda: dials >= 3)
        await until(lambda: told[:3] == [LinkUp(), LinkDown(), LinkUp()])


async def test_nothing_is_sent_while_there_is_no_link() -> None:
    async with aiohttp.ClientSession() as session:
        await FarmLink(session, "http://127.0.0.1:1").send(wire.Bye())


async def test_what_comes_is_told_in_order_and_what_means_nothing_is_not() -> None:
    async def talk(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for text in ('{"op":"ping","nonce":"1"}', "x", '{"op":"?"}', '{"op":"ping","nonce":"2"}'):
            await socket.send_str(text)
        await socket.receive()
        return socket

    async with serving("GET", "/v1/agent", talk) as url, dialling(url) as (_, told):
        await until(lambda: len(told) >= 3)
        assert told[:3] == [LinkUp(), Heard(wire.Ping(nonce="1")), Heard(wire.Ping(nonce="2"))]


async def test_a_farm_that_reads_nothing_does_not_hold_the_agent_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_link, "_SEND_S", 0.05)
    dials = 0

    async def deaf(request: web.Request) -> web.StreamResponse:
        nonlocal dials
        dials += 1
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.transport is not None:
            request.transport.pause_reading()
        await asyncio.Event().wait()
        return socket

    async with serving("GET", "/v1/agent", deaf) as url, dialling(url) as (link, told):
        await until(lambda: LinkUp() in told)
        large = wire.Error(detail="x" * 1_000_000)
        async with asyncio.timeout(PATIENCE_S):
            while LinkDown() not in told:
                await link.send(large)
                await asyncio.sleep(0)
        await until(lambda: dials >= 2)


# Uploads


async def test_a_file_goes_up_under_its_token(tmp_path: Path) -> None:
    seen: list[tuple[str, str, bytes]] = []

    async def keep(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen.append((request.match_info["name"], request.headers["X-Tabfarm-Token"], body))
        return web.json_response({"name": "kept.png"}, status=201)

    path = tmp_path / "big"
    path.write_bytes(b"y" * 600_000)
    async with (
        serving("PUT", "/v1/attempts/att/artifacts/{name}", keep) as url,
        aiohttp.ClientSession() as session,
    ):
        uploads = HttpUploads(session, lambda: url)
        assert await uploads.upload("att", TOKEN, "a b.png", b"x", "image/png") == "kept.png"
        assert await uploads.upload("att", TOKEN, "c.png", path, "image/png") == "kept.png"
    assert seen[0] == ("a b.png", "3.14", b"x")
    assert len(seen[1][2]) == 600_000


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (409, StaleAssignment),
        (404, StaleAssignment),
        (403, StaleAssignment),
        (413, UploadRefused),
        (507, UploadRefused),
        (500, UploadRefused),
    ],
)
async def test_an_upload_that_is_not_taken_says_why(
    monkeypatch: pytest.MonkeyPatch, status: int, raised: type[Exception]
) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    tries = 0

    async def refuse(request: web.Request) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        await request.read()
        return web.Response(status=status)

    async with (
        serving("PUT", "/v1/attempts/att/artifacts/{name}", refuse) as url,
        aiohttp.ClientSession() as session,
    ):
        with pytest.raises(raised):
            await HttpUploads(session, lambda: url).upload("att", TOKEN, "a", b"x", "text/plain")
    assert tries == (5 if status == 500 else 1)


def farm(name: str, dials: list[str], window_s: float) -> Handler:
    """Let the first that dials in, and hang up on everybody at once."""

    async def serve(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if name not in dials:
            await socket.send_str(welcome(window_s))
        dials.append(name)
        await socket.close()
        return socket

    return serve


@pytest.mark.parametrize("window_s", [1000, 0.05])
async def test_a_farm_that_is_lost_is_dialled_for_a_window_and_then_the_next(
    monkeypatch: pytest.MonkeyPatch, window_s: float
) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(agent_link, "_LONGEST_WAIT_S", 0.001)
    dials: list[str] = []
    async with (
        serving("GET", "/v1/agent", farm("one", dials, window_s)) as one,
        serving("GET", "/v1/agent", farm("two", dials, 1000)) as two,
        aiohttp.ClientSession() as session,
        asyncio.TaskGroup() as group,
    ):
        link = FarmLink(session, one, two)
        task = group.create_task(link.run(lambda _: None))
        if window_s == 1000:
            await until(lambda: len(dials) >= 20)
            assert set(dials) == {"one"}
            assert link.url == one
        else:
            await until(lambda: dials[-5:] == ["two"] * 5)
            assert dials[:2] == ["one", "one"]
            assert link.url == two
        task.cancel()


async def test_where_one_farm_is_not_there_the_next_is_dialled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    dials: list[str] = []
    async with (
        serving("GET", "/v1/agent", farm("two", dials, 1000)) as two,
        aiohttp.ClientSession() as session,
        asyncio.TaskGroup() as group,
    ):
        link = FarmLink(session, "http://127.0.0.1:1", two)
        task = group.create_task(link.run(lambda _: None))
        await until(lambda: dials)
        task.cancel()


async def test_a_farm_that_has_fallen_silent_is_dialled_anew_before_its_window_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    at: list[float] = []
    now = asyncio.get_running_loop().time

    async def let_in_and_fall_silent(request: web.Request) -> web.StreamResponse:
        at.append(now())
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(welcome(window_s=1.0))
        async for _ in socket:
            pass
        return socket

    async with (
        serving("GET", "/v1/agent", let_in_and_fall_silent) as url,
        dialling(url) as (link, told),
    ):
        await until(lambda: len(at) == 2)
        assert at[1] - at[0] > 0.4
        assert [LinkUp(), LinkDown()] == [t for t in told if not isinstance(t, Heard)][:2]
        assert link.url == url


async def test_a_farm_that_answers_is_stayed_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_link, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(connecting, "_SILENCE_S", 3600)
    loop = asyncio.get_running_loop()
    running, passed_s = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: running() + passed_s)
    dials: list[web.WebSocketResponse] = []

    async def let_in(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(welcome(window_s=60))
        dials.append(socket)
        async for _ in socket:
            pass
        return socket

    async with serving("GET", "/v1/agent", let_in) as url, dialling(url) as (_, told):
        await until(lambda: any(isinstance(one, Heard) for one in told))
        for number in range(6):  # twice the window, in all
            passed_s += 20
            await asyncio.sleep(0)
            ping = wire.Ping(nonce=f"{number}")
            await dials[0].send_str(ping.model_dump_json())
            await until(lambda ping=ping: Heard(ping) in told)  # type: ignore[misc]
        assert len(dials) == 1


def welcome(window_s: float) -> str:
    return wire.Welcome(
        epoch_number=1,
        capacity=wire.Capacity(),
        heartbeat_interval_s=window_s / 4,
        window_s=window_s,
    ).model_dump_json()
