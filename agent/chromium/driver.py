"""Playwright's driver: started, watched and ended as a process, with every browser it started."""

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright, async_playwright

from agent.chromium import environment, processes
from agent.chromium.shielding import to_the_end, within
from agent.chromium.workspace import Workspace
from agent.ports import BrowserUnavailable

_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0
_starting = asyncio.Lock()


class Driver:
    """One driver process with a workspace of its own."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.workspace = Workspace()
        self._playwright: Playwright | None = None
        self.pid: int | None = None
        self._groups: set[int] = set()

    @property
    def playwright(self) -> Playwright:
        """The started Playwright."""
        if self._playwright is None:
            raise RuntimeError("the driver is not running")
        return self._playwright

    async def start(self) -> None:
        """Start the driver.

        Raises:
            BrowserUnavailable: If it does not start.
        """
        timer = asyncio.get_running_loop().call_later(_START_TIMEOUT_S, self.kill)
        try:
            await to_the_end(self._start(), hurry=self.kill, name="driver.start")
        except Exception as error:  # Playwright raises bare ones when its driver breaks off
            raise BrowserUnavailable(f"Playwright's driver does not start: {error}") from error
        finally:
            timer.cancel()

    async def _start(self) -> None:
        async with _starting:
            with _as_our_environment(
                environment.for_driver(self._env, temporary=self.workspace.path)
            ):
                self._playwright = await async_playwright().start()
        self.pid = self._find()

    def _find(self) -> int | None:
        """Find the driver among our children, by the temporary directory only it was given."""
        mine = str(self.workspace.path)
        for child in processes.children(os.getpid()):
            if processes.environment(child.pid).get("TMPDIR") == mine:
                return child.pid
        return None

    def browser_groups(self) -> set[int]:
        """Return the process groups of the browsers started so far, and remember them."""
        if self.pid is not None:
            self._groups |= {p.group for p in processes.children(self.pid) if p.group == p.pid}
        return self._groups

    def remember_group(self, group: int) -> None:
        """Count a process group as one of a browser of ours."""
        self._groups.add(group)

    def kill(self) -> None:
        """End the driver and every browser it started, at once, also when half started."""
        self.pid = self.pid or self._find()
        for group in self.browser_groups():
            processes.kill_group(group)
        if self.pid is not None:
            processes.kill(self.pid)

    async def stop(self) -> None:
        """Kill, wait until nothing is left (bounded), and delete the workspace. Never raises."""
        await to_the_end(self._stop(), name="driver.stop")

    async def _stop(self) -> None:
        self.kill()
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            with contextlib.suppress(PlaywrightError, OSError):
                await within(_END_TIMEOUT_S, playwright.stop())
        await within(_END_TIMEOUT_S, self._gone())
        await asyncio.to_thread(self.workspace.remove)  # may hold thousands of files

    async def _gone(self) -> None:
        pids = {self.pid} if self.pid is not None else set()
        while processes.anyone_left(self._groups, pids):
            self.kill()
            await asyncio.sleep(0.01)  # the kernel announces no end of a group


@contextmanager
def _as_our_environment(env: Mapping[str, str]) -> Iterator[None]:
    """Give the driver this environment: Playwright passes on ours, and offers nothing else."""
    environ = os.environ  # noqa: TID251 - not read as settings
    before = dict(environ)
    try:
        environ.clear()
        environ.update(env)
        yield
    finally:
        environ.clear()
        environ.update(before)
