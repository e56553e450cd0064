"""A farm as a process of its own for the whole session, and directories served to its browsers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, BrowserType, Playwright, expect, sync_playwright

from farm.sdk import FarmClient
from tests.e2e.processes import ROOT, family

_STOP_S = 10.0
# A page that shows nothing fails as surely; on a busy machine it may take its time.
expect.set_options(timeout=30_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningFarm:
    """A farm that `farm up` runs, and what opens it."""

    url: str
    token: str
    pid: int
    data_dir: Path

    def client(self) -> FarmClient:
        return FarmClient(self.url, self.token)


Site = Callable[[Path], str]
"""Serves a directory on loopback and returns its URL, without a slash at the end."""


@pytest.fixture(scope="session")
def farm(
    tmp_path_factory: pytest.TempPathFactory, chromium_executable: str
) -> Iterator[RunningFarm]:
    """One farm with one agent."""
    with farm_up(tmp_path_factory.mktemp("farm")) as running:
        yield running


@contextlib.contextmanager
def farm_up(folder: Path, *options: str, **env: str) -> Iterator[RunningFarm]:
    """Run `farm up`; Ctrl-C ends it within ten seconds, with everything it started."""
    data_dir = folder / "data"
    command = [sys.executable, "-m", "farm.cli", "up", "--port", "0", "--data-dir", str(data_dir)]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("FARM_", "AGENT_"))}
    log = data_dir.parent / "farm.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "--allow", "127.0.0.1", *options],
            stdout=said,
            stderr=said,
            env={**inherited, "PYTHONPATH": str(ROOT), **env},
            start_new_session=True,
        )
    started: set[psutil.Process] = set()
    try:
        running = _started(process, data_dir, log)
        yield running
        started = family(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(_STOP_S) == 0, _tail(log)
        assert [one for one in started if _lives(one)] == []
    finally:
        for one in started | family(process.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.kill()
        process.wait()


def _lives(one: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # It may end between the two questions.
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with contextlib.ExitStack() as servers:
        yield lambda directory: servers.enter_context(_served(directory))


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The sample shop as a process of its own."""
    port = tmp_path_factory.mktemp("shop") / "port"
    command = [sys.executable, "-m", "examples.shop", "--port", "0", "--port-file", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: port.exists() or process.poll() is not None, lambda: "no shop")
            yield f"http://127.0.0.1:{port.read_text()}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


@contextlib.contextmanager
def _served(directory: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _started(process: subprocess.Popen[bytes], data_dir: Path, log: Path) -> RunningFarm:
    file = data_dir / "farm.json"
    until(lambda: file.exists() or process.poll() is not None, lambda: _tail(log))
    assert process.poll() is None, _tail(log)
    url = json.loads(file.read_text())["url"]
    until(lambda: _ready(f"{url}/readyz") or process.poll() is not None, lambda: _tail(log))
    assert process.poll() is None, _tail(log)
    token = (data_dir / "admin.token").read_text().strip()
    return RunningFarm(url=url, token=token, pid=process.pid, data_dir=data_dir)


def until(condition: Callable[[], bool], story: Callable[[], str], within_s: float = 60) -> None:
    """Wait until a condition holds; fails with the story if it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within_s:g} s in vain: {story()}")
        time.sleep(0.05)


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError):
        return False


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])


# pytest-playwright keeps these for the whole session, and with them an event loop that counts as
# running in this thread, so that no asynchronous test could follow. Here they end with the module.


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser_type_launch_args(chromium_executable: str) -> dict[str, Any]:
    return {"executable_path": chromium_executable}


@pytest.fixture(scope="module")
def browser_type(playwright: Playwright) -> BrowserType:
    return playwright.chromium


@pytest.fixture(scope="module")
def launch_browser(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any]
) -> Callable[[], Browser]:
    return lambda: browser_type.launch(**browser_type_launch_args)


@pytest.fixture(scope="module")
def browser(launch_browser: Callable[[], Browser]) -> Iterator[Browser]:
    with launch_browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def browser_context_args() -> dict[str, Any]:
    return {}
