"""A real job of an agent whose network breaks WebSockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from farm.sdk import FarmClient
from tests.e2e.processes import eventually, process
from tests.listening import listening

pytestmark = pytest.mark.slow

TOKEN = "tf_a-token-of-the-test-that-is-long-enough"
_PASSED_ON = ("Authorization", "Content-Type", "X-Tabfarm-Token")


@dataclass
class Proxy:
    """Passes requests on to a farm, and refuses every upgrade."""

    farm: str
    url: str = ""
    refused: int = 0
    polls: int = 0
    session: aiohttp.ClientSession = field(default_factory=aiohttp.ClientSession)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if "Upgrade" in request.headers:
            self.refused += 1
            return web.Response(status=400, text="no upgrades here")
        self.polls += request.path.startswith("/v1/agent/poll/")
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        async with self.session.request(
            request.method,
            self.farm + request.path_qs,
            data=await request.read(),
            headers=headers,
        ) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )


@contextlib.asynccontextmanager
async def proxy_to(farm: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(farm)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{rest:.*}", proxy.serve)
    try:
        async with listening(app) as proxy.url:
            yield proxy
    finally:
        await proxy.session.close()


@contextlib.asynccontextmanager
async def site() -> AsyncIterator[str]:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<ul><li>A</li><li>B</li></ul>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    async with listening(app) as url:
        yield f"{url}/"


@pytest.mark.parametrize("how", ["longpoll", "behind a proxy"])
async def test_a_job_runs_by_requests_alone(tmp_path: Path, how: str) -> None:
    data = tmp_path / "farm"
    allowed = {"FARM_AGENT_TOKEN": TOKEN, "FARM_EGRESS_ALLOW": "127.0.0.1"}
    serve = ("farm.cli", "serve", "--port", "0", "--data-dir", str(data))
    async with process(*serve, cwd=tmp_path, env=allowed), site() as page:
        await eventually((data / "farm.json").exists, 30)
        url = json.loads((data / "farm.json").read_text())["url"]
        async with proxy_to(url) as proxy:
            agent = {
                "FARM_URL": url if how == "longpoll" else proxy.url,
                "AGENT_TRANSPORT": "longpoll" if how == "longpoll" else "auto",
                "AGENT_TOKEN": TOKEN,
                "AGENT_TYPE": "console",
                "AGENT_CLIENT_ID": "far-away",
            }
            async with process("agent.cli", cwd=tmp_path, env=agent):
                await _runs(url, (data / "admin.token").read_text().strip(), page)
            if how != "longpoll":
                assert proxy.refused >= 1
                assert proxy.polls >= 3


async def _runs(url: str, token: str, page: str) -> None:
    steps = [{"goto": page}, {"assert": {"text": "B"}}]
    job = {"name": "far", "browser": "none", "steps": steps}
    async with FarmClient(url, token) as client, asyncio.timeout(60):
        accepted = await client.submit(job)
        done = await client.job(accepted.id, wait_s=50)
        assert done.state == "succeeded", done
        assert [agent.client_id for agent in await client.agents()] == ["far-away"]
