import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from aiohttp.test_utils import TestServer

from examples.shop import build_app
from farm.cli.exits import ExitCode
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import place
from tests.e2e.faults.place import Place
from tests.e2e.processes import ended, eventually, family, interrupt, process

__all__ = ["place"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("chromium_executable")]


@pytest.fixture
async def shop() -> AsyncIterator[str]:
    async with TestServer(build_app()) as server:
        yield f"http://127.0.0.1:{server.port}"


@asynccontextmanager
async def farm_up(tmp_path: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a farm in `tmp_path/.farm` and wait until it says where it is."""
    command = ("farm.cli", "up", "--port", "0", *options)
    file = tmp_path / ".farm" / "farm.json"
    async with process(*command, cwd=tmp_path) as farm:
        await eventually(lambda: file.exists() or farm.returncode is not None, 30)
        yield farm


async def cli(tmp_path: Path, *arguments: str) -> tuple[int | None, str, str]:
    async with process("farm.cli", *arguments, cwd=tmp_path) as command:
        return await ended(command, 60)


def client(tmp_path: Path) -> FarmClient:
    url = json.loads((tmp_path / ".farm" / "farm.json").read_text())["url"]
    return FarmClient(url, token(tmp_path))


def token(tmp_path: Path) -> str:
    return (tmp_path / ".farm" / "admin.token").read_text().strip()


def write(tmp_path: Path, name: str, steps: list[object]) -> str:
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps({"name": name, "steps": steps}))
    return str(file)


def local(shop: str) -> tuple[str, str]:
    return "--allow", shop.removeprefix("http://")


async def present(tmp_path: Path) -> None:
    async with asyncio.timeout(60), client(tmp_path) as farm:
        while not any(agent.present for agent in await farm.agents()):
            await asyncio.sleep(0.05)


async def state(tmp_path: Path, job_id: str, wanted: str) -> None:
    async with asyncio.timeout(60), client(tmp_path) as farm:
        while (await farm.job(job_id)).state != wanted:
            await asyncio.sleep(0.05)


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


async def test_the_admin_token_is_said_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        async with farm_up(tmp_path) as farm:
            await present(tmp_path)
            interrupt(farm)
            code, out, talk = await ended(farm, 10)
            assert code == ExitCode.SUCCEEDED, talk
            assert out == ""
            said.append(talk)
    assert token(tmp_path) in said[0]
    assert token(tmp_path) not in said[1]
    assert stat.S_IMODE((tmp_path / ".farm" / "admin.token").stat().st_mode) == 0o600


async def test_jobs_are_submitted_watched_and_read_through_the_command_line(
    shop: str, tmp_path: Path
) -> None:
    job = write(
        tmp_path,
        "titles",
        [
            {"goto": f"{shop}/"},
            {"extract": {"fields": {"title": "h1"}}},
            {"screenshot": "home.png"},
        ],
    )
    async with farm_up(tmp_path, *local(shop)):
        code, out, talk = await cli(tmp_path, "jobs", "submit", job, "--watch")
        assert code == ExitCode.SUCCEEDED, talk
        job_id = out.strip()
        _, out, _ = await cli(tmp_path, "jobs", "items", job_id, "--json")
        assert json.loads(out) == {"title": "Good things for the house"}
        await cli(tmp_path, "jobs", "artifacts", job_id, "-o", "files")
        assert (tmp_path / "files" / "home.png").read_bytes().startswith(b"\x89PNG")
        _, out, _ = await cli(tmp_path, "agents", "--json")
        assert [agent["client_id"] for agent in json.loads(out)] == ["agent-1"]


async def test_no_process_below_the_farm_shows_a_token(shop: str, tmp_path: Path) -> None:
    job = write(tmp_path, "waits", [{"goto": f"{shop}/"}, {"wait": "5m"}])
    async with farm_up(tmp_path, *local(shop)) as farm:
        _, out, _ = await cli(tmp_path, "jobs", "submit", job)
        await state(tmp_path, out.strip(), "running")
        below = family(farm.pid)
        assert any("chrom" in one.name() for one in below)
        for one in below:
            proc = Path("/proc") / str(one.pid)
            shown = (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
            assert token(tmp_path).encode() not in shown
            assert b"TOKEN=" not in shown
            if "chrom" in one.name():
                assert b"FARM_" not in shown
                assert b"AGENT_" not in shown


async def test_ctrl_c_ends_a_busy_farm_within_ten_seconds_and_leaves_no_process(
    shop: str, tmp_path: Path
) -> None:
    job = write(tmp_path, "waits", [{"goto": f"{shop}/"}, {"wait": "5m"}])
    async with farm_up(tmp_path, "--agents", "2", *local(shop)) as farm:
        _, out, _ = await cli(tmp_path, "jobs", "submit", job)
        await state(tmp_path, out.strip(), "running")
        below = family(farm.pid)
        interrupt(farm)
        code, _, talk = await ended(farm, 10)
    assert code == ExitCode.SUCCEEDED, talk
    assert alive(below) == []


async def test_an_agent_that_is_killed_is_replaced_and_its_job_goes_on(
    place: Place, tmp_path: Path
) -> None:
    place.hold("/held/page")
    job = write(tmp_path, "waits", [{"goto": f"{place.url}/held/page"}])
    async with farm_up(tmp_path, *local(place.url)) as farm:
        _, out, _ = await cli(tmp_path, "jobs", "submit", job)
        await place.asked("GET /held/page")
        below = family(farm.pid)
        agent = next(one for one in psutil.Process(farm.pid).children())
        os.kill(agent.pid, signal.SIGKILL)
        await eventually(lambda: alive(below) == [], 5)
        place.let_go("/held/page")
        await state(tmp_path, out.strip(), "succeeded")
        async with client(tmp_path) as api:
            history = (await api.job(out.strip())).history
    assert [attempt.state for attempt in history] == ["lost", "succeeded"]
