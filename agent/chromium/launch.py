"""One life of a browser: the driver, Chromium on Playwright's pipe, and word when either ends.

The pipe is what makes nothing survive us: when the agent dies, however it dies, the driver reads
the end of its input and goes, and Chromium the end of its own.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError

from agent.chromium import environment, features, processes
from agent.chromium.discovery import Found, Kind
from agent.chromium.driver import Driver
from agent.chromium.recording.traces import TraceFiles
from agent.chromium.shielding import to_the_end
from agent.chromium.trial import browser_pid, explain
from agent.ports import BrowserInfo, BrowserUnavailable

_log = structlog.get_logger(__name__)
_LAUNCH_TIMEOUT_MS = 30_000


class Life:
    """A browser from launch to end. Used once: `start`, then `kill`, which may come at any time."""

    def __init__(
        self, found: Found, *, headless: bool, env: Mapping[str, str], slow_mo_ms: float = 0
    ) -> None:
        self._found = found
        self._headless = headless
        self._env = env
        self._slow_mo_ms = slow_mo_ms
        self._driver = Driver(env)
        self.traces = TraceFiles(self._driver.workspace.path / "traces")
        """Where the driver gathers what it traces."""
        self._browser: PlaywrightBrowser | None = None
        self._watches: list[processes.Watch] = []
        self._ended = False
        self._tell: Callable[[str], None] | None = None

    @property
    def browser(self) -> PlaywrightBrowser:
        """The started browser."""
        if self._browser is None:
            raise RuntimeError("the browser is not running")
        return self._browser

    @property
    def is_shell(self) -> bool:
        """Whether it is the kind that has no windows at all."""
        return self._found.kind is Kind.SHELL

    @property
    def place(self) -> Path:
        """A directory that the browser can read, deleted with it."""
        return self._driver.workspace.path

    def groups(self) -> set[int]:
        """Return the process groups of the browser."""
        return set(self._driver.browser_groups())

    @property
    def ended(self) -> bool:
        """Whether the browser has been lost or killed."""
        return self._ended

    async def start(self, lost: Callable[[str], None]) -> BrowserInfo:
        """Launch; `lost` is told once if the browser or its driver ends, unless by `kill`.

        Raises:
            BrowserUnavailable: If it does not start, or `kill` came first.
        """
        self._tell = lost
        try:
            await self._driver.start()
            info = await self._launch()
            if self._ended:
                raise BrowserUnavailable("the browser ended while it was started")
            return info
        except BaseException as error:
            await self.kill()
            if isinstance(error, PlaywrightError | ProcessLookupError):
                reason = explain(str(error), self._found.executable)
                raise BrowserUnavailable(f"{self._found.executable}: {reason}") from error
            raise

    async def _launch(self) -> BrowserInfo:
        workspace = self._driver.workspace
        shell = self._found.kind is Kind.SHELL
        browser = await to_the_end(
            self._driver.playwright.chromium.launch(
                executable_path=self._found.executable,
                headless=self._headless,
                chromium_sandbox=self._found.sandbox,
                args=features.arguments(shell=shell, disabled=self._found.disabled),
                env=dict(
                    environment.for_chromium(
                        self._env, home=workspace.home, temporary=workspace.path
                    )
                ),
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                slow_mo=self._slow_mo_ms or None,
                traces_dir=self.traces.folder,
                timeout=_LAUNCH_TIMEOUT_MS,
            ),
            hurry=self._driver.kill,
            name="browser.launch",
        )
        self._browser = browser
        pid = await browser_pid(browser)
        started_by = os.getpgid(pid)
        self._driver.remember_group(started_by)
        self._watch(pid, "the browser's process has ended")
        if started_by != pid:
            # A script, such as Debian's: when it ends, Playwright answers nothing any more, and
            # the browser would live on.
            self._watch(started_by, "the browser's script has ended")
        if self._driver.pid is not None:
            # Playwright goes on saying is_connected() when its driver has died.
            self._watch(self._driver.pid, "the browser's driver has ended")
        browser.on("disconnected", lambda _: self.lose("the browser has disconnected"))
        product = ("HeadlessChrome/" if self._headless else "Chrome/") + browser.version
        _log.info(
            "browser.launched",
            executable=self._found.executable,
            product=product,
            pid=pid,
            sandbox=self._found.sandbox,
        )
        return BrowserInfo(product=product, executable=self._found.executable, pid=pid)

    def _watch(self, pid: int, detail: str) -> None:
        self._watches.append(processes.Watch(pid, lambda: self.lose(detail)))

    def lose(self, detail: str) -> None:
        """Take the browser for lost, and tell so; does nothing once it has ended."""
        if self._ended:
            return
        self._ended = True
        self._driver.kill()  # what is left of the two must not live on
        if self._tell is not None:
            self._tell(detail)

    async def kill(self) -> None:
        """End the browser and everything it started, and delete its files. May be repeated."""
        self._ended = True
        self._driver.kill()
        for watch in self._watches:
            watch.close()
        await self._driver.stop()
