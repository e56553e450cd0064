"""Whether an executable is a browser that works here: launched, and tested by a page."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError

from agent.chromium import environment, features, processes
from agent.chromium.driver import Driver
from agent.chromium.shielding import to_the_end, within

_LAUNCH_TIMEOUT_MS = 30_000
_PAGE = "data:text/html,<title>well</title>"
_MISSING = re.compile(r"error while loading shared libraries: (\S+?):")
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_PACKAGES = {
    "libasound.so.2": "libasound2",
    "libatk-1.0.so.0": "libatk1.0-0",
    "libatk-bridge-2.0.so.0": "libatk-bridge2.0-0",
    "libatspi.so.0": "libatspi2.0-0",
    "libcairo.so.2": "libcairo2",
    "libcups.so.2": "libcups2",
    "libdbus-1.so.3": "libdbus-1-3",
    "libdrm.so.2": "libdrm2",
    "libexpat.so.1": "libexpat1",
    "libgbm.so.1": "libgbm1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgobject-2.0.so.0": "libglib2.0-0",
    "libgio-2.0.so.0": "libglib2.0-0",
    "libgtk-3.so.0": "libgtk-3-0",
    "libnspr4.so": "libnspr4",
    "libnss3.so": "libnss3",
    "libnssutil3.so": "libnss3",
    "libsmime3.so": "libnss3",
    "libpango-1.0.so.0": "libpango-1.0-0",
    "libX11.so.6": "libx11-6",
    "libxcb.so.1": "libxcb1",
    "libXcomposite.so.1": "libxcomposite1",
    "libXdamage.so.1": "libxdamage1",
    "libXext.so.6": "libxext6",
    "libXfixes.so.3": "libxfixes3",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libXrandr.so.2": "libxrandr2",
}
"""Debian's and Ubuntu's packages of what Chromium links to."""


class LaunchFailed(Exception):  # noqa: N818 - the outcome of a trial
    """The executable does not launch, or does not show a page; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a launch that worked has shown."""

    sandbox: bool
    """Chromium's own sandbox works for this user on this kernel (and was not refused)."""
    disabled: tuple[str, ...]
    """The features Playwright turns off."""


async def attempt(
    driver: Driver, executable: str, *, env: Mapping[str, str], sandboxes: tuple[bool, ...]
) -> Trial:
    """Launch, with the first of the sandbox settings that works.

    Raises:
        LaunchFailed: If none does.
    """
    problem: PlaywrightError | None = None
    for sandbox in sandboxes:
        try:
            return await _launch(driver, executable, env, sandbox)
        except PlaywrightError as error:
            problem = error
    raise LaunchFailed(explain(str(problem), executable))


async def _launch(driver: Driver, executable: str, env: Mapping[str, str], sandbox: bool) -> Trial:
    workspace = driver.workspace
    browser = await to_the_end(
        driver.playwright.chromium.launch(
            executable_path=executable,
            headless=True,
            chromium_sandbox=sandbox,
            args=list(features.QUIET),
            env=dict(environment.for_chromium(env, home=workspace.home, temporary=workspace.path)),
            timeout=_LAUNCH_TIMEOUT_MS,
        ),
        hurry=driver.kill,
        name="trial.launch",
    )
    try:
        page = await browser.new_page()
        await page.goto(_PAGE, timeout=_LAUNCH_TIMEOUT_MS)
        if await page.title() != "well":
            raise PlaywrightError("a page was opened and did not come up")
        disabled = features.disabled_by(processes.command_line(await browser_pid(browser)))
        return Trial(sandbox=sandbox, disabled=disabled)
    finally:
        with contextlib.suppress(PlaywrightError):
            await within(5, browser.close())


async def browser_pid(browser: PlaywrightBrowser) -> int:
    """Ask a started browser for the pid of its main process."""
    session = await browser.new_browser_cdp_session()
    answer = await session.send("SystemInfo.getProcessInfo")
    await session.detach()
    return int(next(p["id"] for p in answer["processInfo"] if p["type"] == "browser"))


def explain(error: str, executable: str) -> str:
    """Return Playwright's account of a failed launch in a line, with what would help."""
    if (missing := _MISSING.search(error)) is not None:
        libraries = sorted({missing[1], *_unresolved(executable)})
        packages = sorted({_PACKAGES[name] for name in libraries if name in _PACKAGES})
        text = f"system libraries are missing: {', '.join(libraries)}"
        return f"{text}; sudo apt-get install -y {' '.join(packages)}" if packages else text
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    said = [line.partition("[err]")[2].strip() for line in lines if "[err]" in line]
    return " | ".join([*lines[:1], *said[-3:]])[:600]


def _unresolved(executable: str) -> list[str]:
    """Return every library the executable lacks, where it is no script."""
    ldd = shutil.which("ldd")
    if ldd is None:
        return []
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - a path that was about to be executed anyway
            [ldd, str(Path(executable).resolve())],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return _NOT_FOUND.findall(done.stdout)
    return []
