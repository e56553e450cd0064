"""Running the real command lines as processes, and looking at what they leave behind."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def process(
    *command: str, cwd: Path, env: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a Python module as a process group of its own; whatever is left of it is killed."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("FARM_", "AGENT_"))}
    inherited["PYTHONPATH"] = str(ROOT)
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        cwd=cwd,
        env={**inherited, **(env or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    descendants = _descendants(started.pid)
    try:
        yield started
    finally:
        descendants |= _descendants(started.pid)
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.wait()
        for one in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def _descendants(pid: int) -> set[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def family(pid: int) -> set[psutil.Process]:
    """Return every process that a process has started, and theirs."""
    return _descendants(pid)


async def ended(
    started: asyncio.subprocess.Process, within_s: float
) -> tuple[int | None, str, str]:
    """Wait for the end and return (exit code, stdout, stderr)."""
    async with asyncio.timeout(within_s):
        out, err = await started.communicate()
    return started.returncode, out.decode(), err.decode()


def interrupt(started: asyncio.subprocess.Process) -> None:
    """Press Ctrl-C."""
    os.killpg(started.pid, signal.SIGINT)


async def eventually(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; raises TimeoutError if it does not in time."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.05)
