"""The images, built and really run: their file systems, users, entry points and health checks."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest

from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.e2e.processes import eventually, process
from tests.images import building
from tests.images.building import Container
from tests.images.conftest import Built

pytestmark = [pytest.mark.images, pytest.mark.slow]

_TOKEN = "tf_a-token-that-farm-and-agent-share"
_USER = "10001:10001"


@asynccontextmanager
async def farm_serve(folder: Path, shop: str) -> AsyncIterator[FarmClient]:
    """Serve a farm that knows the agents' token and lets pages reach the shop."""
    folder.joinpath("agent_token").write_text(_TOKEN)
    command = ("farm.cli", "serve", "--port", "0", "--allow", shop.removeprefix("http://"))
    env = {"FARM_AGENT_TOKEN_FILE": str(folder / "agent_token"), "FARM_LOG_LEVEL": "error"}
    async with process(*command, cwd=folder, env=env) as farm:
        announced = folder / ".farm" / "farm.json"
        await eventually(lambda: announced.exists() or farm.returncode is not None, 30)
        url = json.loads(announced.read_text())["url"]
        token = (folder / ".farm" / "admin.token").read_text().strip()
        async with FarmClient(url, token) as client:
            yield client


@asynccontextmanager
async def agent(image: building.Image, folder: Path, *, drain_s: float) -> AsyncIterator[Container]:
    """Run the agent's image as compose does: an address, and a token in a file."""
    url = json.loads((folder / ".farm" / "farm.json").read_text())["url"]
    env = {
        "FARM_URL": url,
        "AGENT_TOKEN_FILE": "/run/secrets/agent_token",
        "AGENT_CLIENT_ID": "in-a-container",
        "AGENT_DRAIN_S": str(drain_s),
    }
    secret = folder / "agent_token"
    secret.chmod(0o444)
    async with building.running(
        image, env=env, log=folder / "agent.log", files={secret: "/run/secrets/agent_token"}
    ) as container:
        yield container


async def present(farm: FarmClient, container: Container) -> None:
    async with asyncio.timeout(60):
        while not any(one.present for one in await farm.agents()):
            assert container.process.returncode is None, "the agent has ended"
            await asyncio.sleep(0.05)


async def until(farm: FarmClient, job_id: str, state: str) -> JobDetail:
    async with asyncio.timeout(60):
        while (job := await farm.job(job_id)).state != state:
            await asyncio.sleep(0.05)
    return job


async def submit(farm: FarmClient, name: str, steps: list[object]) -> str:
    return (await farm.submit(json.dumps({"name": name, "steps": steps}))).id


async def drained(container: Container) -> int:
    """Stop a container as engines do, by SIGTERM to its first process; return its exit code."""
    first = next(p for p in container.processes() if name_of(p) == "tini")
    first.send_signal(signal.SIGTERM)
    async with asyncio.timeout(30):
        return await container.process.wait()


def browsers(container: Container) -> list[psutil.Process]:
    return [p for p in container.processes() if "chrom" in name_of(p)]


async def test_an_agent_of_the_image_takes_jobs_and_drains(
    built: Built, tmp_path: Path, shop: str
) -> None:
    image = built("agent", "headless")
    async with (
        farm_serve(tmp_path, shop) as farm,
        agent(image, tmp_path, drain_s=20) as container,
    ):
        await present(farm, container)
        assert image.user == _USER
        assert {p.uids().effective for p in browsers(container)} == {10001}
        assert await container.health() == 0

        title = [{"goto": f"{shop}/products"}, {"extract": {"fields": {"title": "h1"}}}]
        job_id = await submit(farm, "a-listing", title)
        await until(farm, job_id, "succeeded")
        assert [item async for item in farm.items(job_id)]

        slow = await submit(farm, "slow", [{"goto": f"{shop}/slow?ms=3000"}])
        await until(farm, slow, "running")
        assert await drained(container) == 0
        assert (await farm.job(slow)).state == "succeeded"


async def test_what_an_agent_of_the_image_can_not_finish_in_time_goes_back_to_the_queue(
    built: Built, tmp_path: Path, shop: str
) -> None:
    image = built("agent", "headless")
    async with farm_serve(tmp_path, shop) as farm:
        async with agent(image, tmp_path, drain_s=1) as container:
            await present(farm, container)
            job_id = await submit(farm, "endless", [{"goto": f"{shop}/hang-response"}])
            await until(farm, job_id, "running")
            assert await drained(container) == 0
            job = await until(farm, job_id, "queued")
        assert [attempt.failure.reason for attempt in job.history if attempt.failure] == ["drained"]


async def test_an_agent_of_the_image_that_shows_windows_has_a_display_of_its_own(
    built: Built, tmp_path: Path, shop: str
) -> None:
    image = built("agent", "headed")
    async with farm_serve(tmp_path, shop) as farm, agent(image, tmp_path, drain_s=5) as container:
        await present(farm, container)
        names = {name_of(p) for p in container.processes()}
        assert {"Xvfb", "jwm"} <= names
        job_id = await submit(farm, "shown", [{"goto": shop}, {"screenshot": {"name": "shop.png"}}])
        await until(farm, job_id, "succeeded")
        others = [p for p in container.processes() if name_of(p) in ("Xvfb", "jwm")]
        assert await drained(container) == 0
        await eventually(lambda: not any(_alive(p) for p in others))


def name_of(process: psutil.Process) -> str:
    """Its name; empty where it has ended since it was listed."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_the_farm_of_the_image_answers_and_ends_when_it_is_told_to(
    built: Built, tmp_path: Path
) -> None:
    image = built("farm", None)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env, log = {"FARM_PORT": str(port)}, tmp_path / "farm.log"
    async with building.running(image, env=env, log=log) as container:
        async with aiohttp.ClientSession() as http, asyncio.timeout(30):
            while await status(http, f"http://127.0.0.1:{port}/healthz") != 200:
                await asyncio.sleep(0.1)
        assert image.user == _USER
        assert await container.health() == 0
        assert await drained(container) == 0


async def status(http: aiohttp.ClientSession, url: str) -> int | None:
    try:
        async with http.get(url) as answer:
            return answer.status
    except aiohttp.ClientConnectorError:
        return None
