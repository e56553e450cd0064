"""A browser's life: what it is given, and that nothing of it outlives anybody."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from playwright.async_api import Error as PlaywrightError

from agent.chromium import processes
from agent.chromium.discovery import Found, Kind
from agent.chromium.launch import Life
from agent.chromium.workspace import Workspace, sweep
from agent.ports import BrowserUnavailable

Lost = asyncio.Queue[str]

pytestmark = pytest.mark.browser

SECRET = "s3cr3t-of-the-agent"
AGENT = """
import asyncio, os, sys
from agent.chromium.discovery import find
from agent.chromium.launch import Life
from agent.telemetry import configure_logging

async def main():
    configure_logging(json=True)
    found = await find(headless=True, env=os.environ)
    life = Life(found, headless=True, env=os.environ)
    info = await life.start(lambda detail: None)
    page = await life.browser.new_page()
    print(info.pid, life._driver.pid, life._driver.workspace.path, flush=True)
    await page.evaluate("for (;;);")

asyncio.run(main())
"""


@pytest.fixture
async def lost() -> Lost:
    return asyncio.Queue()


@pytest.fixture
async def life(headless_browser: Found) -> AsyncIterator[Life]:
    env = {**os.environ, "AGENT_TOKEN": SECRET, "FARM_TOKEN": SECRET, "OTHER": SECRET}
    one = Life(headless_browser, headless=True, env=env)
    yield one
    await one.kill()


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def driver_of(life: Life) -> int:
    pid = life._driver.pid or life._driver._find()
    assert pid is not None
    return pid


def gone(*pids: int) -> bool:
    return not processes.anyone_left(set(), set(pids))


def group_of(life: Life) -> list[processes.Process]:
    groups = life._driver.browser_groups()
    return [process for process in processes.table() if process.group in groups]


async def test_no_secret_of_the_agent_is_in_any_process_it_starts(life: Life, lost: Lost) -> None:
    await life.start(lost.put_nowait)
    page = await life.browser.new_page()
    await page.goto("data:text/html,<iframe src='about:blank'></iframe>")
    pids = [process.pid for process in group_of(life)] + [driver_of(life)]
    assert len(pids) > 3
    for pid in pids:
        assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        assert not any(SECRET in argument for argument in processes.command_line(pid))
    homes = {processes.environment(pid).get("HOME") for pid in pids[:-1]}
    assert str(life._driver.workspace.home) in homes
    await life.kill()


async def test_the_agents_own_environment_is_as_it_was(life: Life, lost: Lost) -> None:
    before = dict(os.environ)
    await life.start(lost.put_nowait)
    assert dict(os.environ) == before


async def test_all_files_are_in_the_workspace_and_go_with_it(life: Life, lost: Lost) -> None:
    await life.start(lost.put_nowait)
    path = life._driver.workspace.path
    profiles = [p for p in path.iterdir() if "profile" in p.name]
    assert profiles
    await life.kill()
    assert not path.exists()


@pytest.mark.parametrize("victim", ["browser", "script", "driver"])
async def test_the_death_of_either_half_is_told_once_and_ends_the_other(
    life: Life, lost: Lost, victim: str
) -> None:
    info = await life.start(lost.put_nowait)
    page = await life.browser.new_page()
    driver = driver_of(life)
    # Debian starts the browser by a script, which leads the group; elsewhere they are one.
    pids = {"browser": info.pid, "script": os.getpgid(info.pid), "driver": driver}
    os.kill(pids[victim], signal.SIGKILL)
    async with asyncio.timeout(5):
        detail = await lost.get()
    assert "ended" in detail
    groups = life._driver.browser_groups()
    await until(lambda: not processes.anyone_left(groups, {driver, info.pid}))
    with pytest.raises(PlaywrightError):
        async with asyncio.timeout(5):
            await page.evaluate("1")
    await life.kill()
    assert lost.empty()


async def test_killing_is_told_to_nobody_and_may_be_repeated(life: Life, lost: Lost) -> None:
    info = await life.start(lost.put_nowait)
    await life.kill()
    await life.kill()
    assert gone(info.pid)
    assert lost.empty()
    assert life.ended


async def test_a_browser_that_hangs_is_killed_within_bounds(life: Life, lost: Lost) -> None:
    info = await life.start(lost.put_nowait)
    os.kill(info.pid, signal.SIGSTOP)
    async with asyncio.timeout(5):
        await life.kill()
    assert gone(info.pid)


@pytest.mark.parametrize("progress", ["driver", "browser"])
async def test_a_start_that_is_cancelled_leaves_nothing(
    life: Life, lost: Lost, progress: str
) -> None:
    def half_done() -> bool:
        driver = life._driver._find()
        return driver is not None and (progress == "driver" or bool(processes.children(driver)))

    async with asyncio.timeout(20):
        async with asyncio.TaskGroup() as group:
            start = group.create_task(life.start(lost.put_nowait))
            await until(half_done)
            driver = driver_of(life)
            start.cancel()
    assert start.cancelled()
    assert not processes.anyone_left(life._driver.browser_groups(), {driver})
    assert not life._driver.workspace.path.exists()


async def test_a_start_that_is_killed_fails_and_leaves_nothing(life: Life, lost: Lost) -> None:
    async with asyncio.timeout(20):
        async with asyncio.TaskGroup() as group:
            start = group.create_task(_outcome(life, lost))
            await until(lambda: life._driver._find() is not None)
            await life.kill()
    assert isinstance(start.result(), BrowserUnavailable)
    assert not life._driver.workspace.path.exists()


async def _outcome(life: Life, lost: Lost) -> object:
    try:
        return await life.start(lost.put_nowait)
    except BrowserUnavailable as error:
        return error


async def test_an_executable_that_is_no_browser_is_named(lost: Lost) -> None:
    found = Found(executable="/bin/false", kind=Kind.FULL, sandbox=False)
    life = Life(found, headless=True, env=os.environ)
    with pytest.raises(BrowserUnavailable, match="/bin/false"):
        await life.start(lost.put_nowait)
    assert not life._driver.workspace.path.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_outlives_an_agent_that_is_killed(
    headless_browser: Found, number: signal.Signals
) -> None:
    with (
        # Its own, since any agent that starts on this machine sweeps the place they share.
        tempfile.TemporaryDirectory() as own,
        subprocess.Popen(
            [sys.executable, "-c", AGENT],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": own},
        ) as agent,
    ):
        assert agent.stdout is not None
        pid, driver, path = agent.stdout.readline().split()
        groups = {os.getpgid(int(pid))}
        agent.send_signal(number)
        await until(lambda: not processes.anyone_left(groups, {int(pid), int(driver)}))
        assert agent.wait() == -number
        assert Path(path).exists()
        assert Path(path) in sweep(Path(own))
        assert not Path(path).exists()


def test_the_workspace_of_a_living_agent_is_not_swept(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert sweep(tmp_path) == []
    assert workspace.path.exists()
    workspace.remove()
    assert list(tmp_path.iterdir()) == []


def test_workspaces_are_made_where_temporary_files_belong() -> None:
    workspace = Workspace()
    assert workspace.path.parent == Path(tempfile.gettempdir())
    workspace.remove()
