"""Fetching a browser: the only code of the agent that changes the machine, and only when asked."""

import asyncio
import fcntl
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from agent.chromium.discovery import Found, find
from agent.ports import BrowserUnavailable

_log = structlog.get_logger(__name__)
_PATIENCE_S = 900.0


async def install(*, headed: bool, env: Mapping[str, str]) -> Found:
    """See to it that `find` succeeds for headless use (and with windows, if `headed`).

    Does nothing where it does already. One at a time on this machine: others wait.

    Raises:
        BrowserUnavailable: If nothing helped; says what was tried.
    """
    async with _alone(env):
        problems: list[str] = []
        for command in (None, *recipes(root=os.geteuid() == 0, system=system_id())):
            if command is not None and (code := await _run(command, env)) != 0:
                problems.append(f"`{' '.join(command)}` ended with {code}")
                continue
            try:
                return await _find_all(headed=headed, env=env)
            except BrowserUnavailable as error:
                problems.append(str(error))
        raise BrowserUnavailable("\n".join(problems))


def recipes(*, root: bool, system: str) -> list[list[str]]:
    """Return the commands to try, in order, each of which may do.

    Debian's packages are the last resort of root on Debian; Ubuntu's of the same names are empty
    stubs for snap.
    """
    playwright = [sys.executable, "-m", "playwright", "install"]
    if not root:
        return [[*playwright, "chromium"]]
    found = [[*playwright, "--with-deps", "chromium"]]
    if system == "debian":
        apt = "apt-get update && apt-get install -y chromium chromium-headless-shell"
        found.append(["sh", "-c", apt])
    else:
        found.append([*playwright, "chromium"])
    return found


def system_id(release: Path = Path("/etc/os-release")) -> str:
    """Return the ID of `/etc/os-release`, such as `debian`; empty where there is none."""
    try:
        lines = release.read_text().splitlines()
    except OSError:
        return ""
    values = (line.partition("=")[2] for line in lines if line.startswith("ID="))
    return next(values, "").strip("\"'")


async def _find_all(*, headed: bool, env: Mapping[str, str]) -> Found:
    found = await find(headless=True, env=env)
    if headed:
        await find(headless=False, env=env)
    return found


async def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    _log.info("browser.install", command=" ".join(command))
    # Its talk goes where ours goes: stdout is for data.
    process = await asyncio.create_subprocess_exec(
        *command, env={**env, "DEBIAN_FRONTEND": "noninteractive"}, stdout=sys.stderr
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise


@asynccontextmanager
async def _alone(env: Mapping[str, str]) -> AsyncIterator[None]:
    folder = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tabfarm"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as lock:
        async with asyncio.timeout(_PATIENCE_S):
            while not _lock(lock.fileno()):  # noqa: ASYNC110 - no event tells of a file lock
                await asyncio.sleep(0.2)
        yield


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
