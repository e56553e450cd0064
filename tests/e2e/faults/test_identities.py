"""Saved identities over real agents and browsers: seen from the site, and from the file system."""

import asyncio
import io
import signal
import uuid
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
from aiohttp import web

from farm.protocol.recordings import RecordingKind
from farm.sdk import FarmClient
from tests.e2e.faults.house import House
from tests.e2e.faults.watching import happened, once, ran, rested, submitted
from tests.e2e.processes import eventually
from tests.listening import listening
from tests.proxies import PASSWORD, USERNAME, Proxying, proxying

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FAR = "shop.test"
EVERY = [kind.value for kind in RecordingKind]


class Shop:
    """A site with accounts, which only a proxy can find; it sees who is in at the same time."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.held = asyncio.Event()
        self.inside: set[str] = set()
        self.most_inside = 0
        self.visits = 0
        self.waiting = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{FAR}:{self.port}"

    async def login(self, request: web.Request) -> web.Response:
        session = f"session-{uuid.uuid4().hex}"
        self.sessions.add(session)
        answer = _page("<p id=in>in</p><script>localStorage.setItem('name', 'ann')</script>")
        answer.set_cookie("session", session, httponly=True)
        return answer

    async def account(self, request: web.Request) -> web.Response:
        known = request.cookies.get("session") in self.sessions
        who = "<script>document.write(`<p id=who>${localStorage.getItem('name')}</p>`)</script>"
        return _page(who if known else "<p id=who>nobody</p>")

    async def enter(self, request: web.Request) -> web.Response:
        name = request.query["name"]
        self.inside.add(name)
        self.visits += 1
        self.most_inside = max(self.most_inside, len(self.inside))
        return _page("<p id=entered>entered</p>")

    async def leave(self, request: web.Request) -> web.Response:
        self.inside.discard(request.query["name"])
        return _page("<p id=left>left</p>")

    async def wait(self, request: web.Request) -> web.Response:
        self.waiting += 1
        await self.held.wait()
        return _page("<p id=done>done</p>")


def _page(body: str) -> web.Response:
    return web.Response(text=f"<!doctype html><title>shop</title>{body}", content_type="text/html")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    app = web.Application()
    for path in ("login", "account", "enter", "leave", "wait"):
        app.router.add_get(f"/{path}", getattr(shop, path))
    async with listening(app, cancels=True) as url:
        shop.port = int(url.rpartition(":")[2])
        yield shop
        shop.held.set()


@pytest.fixture
async def proxy(shop: Shop) -> AsyncIterator[Proxying]:
    async with proxying("socks5", names={FAR: "127.0.0.1"}) as proxy:
        yield proxy


def told(proxy: Proxying) -> dict[str, Any]:
    server = f"{proxy.scheme}://127.0.0.1:{proxy.port}"
    return {"server": server, "username": USERNAME, "password": PASSWORD}


async def who(client: FarmClient, shop: Shop, **identity: str) -> str:
    steps = (
        {"goto": f"{shop.url}/account"},
        {"extract": {"fields": {"who": {"selector": "#who", "required": True}}}},
    )
    done = await ran(client, once("who", *steps, identity={"name": "shopper", **identity}))
    assert done.state == "succeeded", done.failure
    (item,) = [item async for item in client.items(done.id)]
    return str(item["who"])


def leaks(house: House, shop: Shop) -> list[str]:
    """Where a secret is readable: in what the farm keeps and has said, or in Chromium."""
    secrets = [USERNAME, PASSWORD, *shop.sessions]
    found = []
    for path in (*house.data_dir.glob("farm.db*"), house.log):
        found += [str(path) for s in secrets if path.exists() and s.encode() in path.read_bytes()]
    for process in house.chromium():
        try:
            known = " ".join((*process.cmdline(), *process.environ().values()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        found += [process.name() for s in (USERNAME, PASSWORD) if s in known]
    return found


async def recorded_secrets(client: FarmClient, shop: Shop) -> set[tuple[str, str]]:
    """Record an attempt that fails; return what of an identity is in which of its files."""
    steps = ({"goto": f"{shop.url}/account"}, {"assert": {"selector": "#who", "text": "nobody"}})
    body = once("recorded", *steps, identity={"name": "shopper", "mode": "clone"}, record=EVERY)
    done = await ran(client, body)
    assert done.state == "failed"
    secrets = dict.fromkeys((USERNAME, PASSWORD), "proxy") | dict.fromkeys(shop.sessions, "session")
    found = set()
    for file in await client.artifacts(done.id):
        assert file.state == "ready", file
        content = b"".join([chunk async for chunk in client.artifact(done.id, file.name)])
        if file.name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = b"".join(archive.read(name) for name in archive.namelist())
        found |= {
            (file.recording or "", what) for s, what in secrets.items() if s.encode() in content
        }
    told = f"{done} {[event async for event in client.events(done.id, follow=False)]}"
    return found | {("told", what) for s, what in secrets.items() if s in told}


async def test_who_logged_in_on_an_agent_that_was_killed_is_logged_in_on_another(
    house: House, shop: Shop, proxy: Proxying
) -> None:
    farm = await house.serve("--allow", f"127.0.0.1:{proxy.port}")
    first = await house.agent("one")
    async with house.client() as client:
        await client.put_identity("shopper", {"proxy": told(proxy)})
        assert await who(client, shop) == "nobody"
        log_in = once("log in", {"goto": f"{shop.url}/login"}, identity={"name": "shopper"})
        assert (await ran(client, log_in)).state == "succeeded"
        saved = await client.identity("shopper")
        assert saved.state is not None
        assert (saved.version, saved.state.cookies) == (3, 1)

        wait = once("waits", {"goto": f"{shop.url}/wait"}, identity={"name": "shopper"})
        held = await submitted(client, wait)
        await happened(client, held, "step_started")
        assert leaks(house, shop) == []
        behind = await submitted(client, wait)
        first.send_signal(signal.SIGKILL)
        lost = await rested(client, held)
        assert (lost.state, len(lost.history)) == ("failed", 1)
        assert (await client.identity("shopper")).version == 3
        await client.cancel(behind)

        await house.agent("two")
        assert await who(client, shop) == "ann"
        for mode in ("clone", "read_only"):
            before = (await client.identity("shopper")).version
            assert await who(client, shop, mode=mode) == "ann"
            assert (await client.identity("shopper")).version == before
        assert await recorded_secrets(client, shop) == {("trace", "session"), ("har", "session")}
        history = [event async for event in client.events(held, follow=False)]
        assert not any(s in str(history) for s in (USERNAME, PASSWORD, *shop.sessions))
    assert leaks(house, shop) == []
    assert set(proxy.places) == {f"{FAR}:{shop.port}"}
    farm.send_signal(signal.SIGINT)
    assert farm.wait(10) == 0, house.said()


async def test_exclusive_uses_never_overlap_across_agents_and_reading_ones_do(
    house: House, shop: Shop, proxy: Proxying
) -> None:
    await house.up("--allow", f"127.0.0.1:{proxy.port}", agents=2)

    def visit(name: str, mode: str) -> dict[str, Any]:
        steps = (
            {"goto": f"{shop.url}/enter?name={name}"},
            {"wait": "150ms"},
            {"goto": f"{shop.url}/leave?name={name}"},
        )
        return once(name, *steps, identity={"name": "shopper", "mode": mode})

    async with house.client() as client:
        await client.put_identity("shopper", {"proxy": told(proxy)})
        jobs = [await submitted(client, visit(f"v{n}", "exclusive")) for n in range(5)]
        for job_id in jobs:
            done = await rested(client, job_id)
            assert done.state == "succeeded", done.failure
        assert (shop.visits, shop.most_inside) == (5, 1)
        assert (await client.identity("shopper")).version == 6
        use = {"name": "shopper", "mode": "read_only"}
        wait = once("reads", {"goto": f"{shop.url}/wait"}, identity=use)
        reading = [await submitted(client, wait) for _ in range(2)]
        await eventually(lambda: shop.waiting == 2, 30)
        shop.held.set()
        for job_id in reading:
            assert (await rested(client, job_id)).state == "succeeded"
        assert (await client.identity("shopper")).version == 6


async def test_a_farm_that_has_lost_its_key_says_so_and_loses_nothing_else(
    house: House, shop: Shop, proxy: Proxying
) -> None:
    key = house.data_dir / "identity.key"
    farm = await house.serve("--allow", f"127.0.0.1:{proxy.port}")
    assert key.stat().st_mode & 0o777 == 0o600
    await house.agent("one")
    async with house.client() as client:
        await client.put_identity("shopper", {"proxy": told(proxy)})
        log_in = once("log in", {"goto": f"{shop.url}/login"}, identity={"name": "shopper"})
        assert (await ran(client, log_in)).state == "succeeded"
        port = int(house.url.rpartition(":")[2])
    farm.kill()
    farm.wait()
    key.unlink()
    await house.serve("--allow", f"127.0.0.1:{proxy.port}", port=port)
    await house.present("one")
    async with house.client() as client:
        done = await ran(client, log_in)
        assert done.failure is not None
        assert done.failure.reason == "identity_unavailable"
        assert "FARM_IDENTITY_KEY_FILE" in done.failure.detail
        assert (await client.identity("shopper")).version == 2
    assert "identity.unreadable" in house.log.read_text()
