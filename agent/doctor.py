"""What an agent would find on this machine, and whether it works: `farm-agent doctor`."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from agent.chromium.browser import ChromiumBrowser
from agent.chromium.discovery import Found, find
from agent.clock import monotonic
from agent.ports import BrowserUnavailable
from agent.xvfb import Xvfb, XvfbUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found. It is well when there are no problems."""

    python: str
    playwright: str
    executable: str | None = None
    kind: str | None = None
    product: str | None = None
    sandbox: bool | None = None
    """Chromium's own sandbox is in use; never for root."""
    start_ms: float | None = None
    """From nothing to a browser that has shown a page."""
    round_trip_ms: float | None = None
    """A window opened, a page shown in it, and the window closed."""
    headed: str | None = None
    """What windows would appear on: `display`, `xvfb`, or None where they cannot."""
    headed_executable: str | None = None
    problems: tuple[str, ...] = ()
    """In words, each with what would help."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and stops nothing."""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return {**asdict(self), "problems": list(self.problems), "notes": list(self.notes)}


async def examine(
    *,
    env: Mapping[str, str],
    headless: bool = True,
    executable: str | None = None,
    sandbox: bool | None = None,
) -> Examination:
    """Find the browser an agent with these settings would use, start it and show one page.

    Changes nothing on the machine and never raises for what it finds.
    """
    facts: dict[str, Any] = {"python": sys.version.split()[0], "playwright": version("playwright")}
    problems: list[str] = []
    notes: list[str] = []
    facts |= await _headed(env, executable, problems if not headless else notes)
    screen = None if headless or env.get("DISPLAY") else Xvfb()
    try:
        if screen is not None:
            env = {**env, "DISPLAY": await screen.start(env)}
        found = await find(headless=headless, executable=executable, env=env, sandbox=sandbox)
        facts |= {
            "executable": found.executable,
            "kind": found.kind.value,
            "sandbox": found.sandbox,
        }
        facts |= await _page(found, env, headless=headless)
        if not found.sandbox:
            notes.append(_why_no_sandbox())
    except (BrowserUnavailable, XvfbUnavailable) as error:
        problems.append(str(error))
    finally:
        if screen is not None:
            await screen.stop()
    return Examination(**facts, problems=tuple(dict.fromkeys(problems)), notes=tuple(notes))


async def _page(found: Found, env: Mapping[str, str], *, headless: bool) -> dict[str, Any]:
    browser = ChromiumBrowser(
        headless=headless, env=env, executable=found.executable, sandbox=found.sandbox
    )
    began = monotonic()
    try:
        info = await browser.start(lambda _: None)
        started = monotonic()
        await browser.probe()
        return {
            "product": info.product,
            "start_ms": _ms(started - began),
            "round_trip_ms": _ms(monotonic() - started),
        }
    except Exception as error:  # whatever it is, it is what was to be found out
        raise BrowserUnavailable(f"{found.executable}: {error}") from error
    finally:
        await browser.kill()


async def _headed(
    env: Mapping[str, str], executable: str | None, complaints: list[str]
) -> dict[str, Any]:
    """Tell whether windows are possible; why not goes to `complaints`."""
    screen = "display" if env.get("DISPLAY") else None
    if screen is None and shutil.which("Xvfb", path=env.get("PATH")):
        screen = "xvfb"
    if screen is None:
        complaints.append("no DISPLAY and no Xvfb for windows; sudo apt-get install -y xvfb")
    try:
        found = await find(headless=False, executable=executable, env=env)
    except BrowserUnavailable as error:
        complaints.append(f"no browser for windows: {error}")
        return {"headed": None}
    return {"headed": screen, "headed_executable": found.executable if screen else None}


def _why_no_sandbox() -> str:
    if os.geteuid() == 0:
        return "Chromium's sandbox is off, as it is for root; run the agent as another user"
    return (
        "Chromium's sandbox does not work here: it needs unprivileged user namespaces, "
        "or a chrome-sandbox helper that is setuid root"
    )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
