"""What an agent would find on this machine, and whether it works: `farm-agent doctor`."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points, version
from typing import Any

from agent.chromium import installing
from agent.chromium.browser import ChromiumBrowser
from agent.chromium.discovery import Found, find, why_no_sandbox
from agent.clock import monotonic
from agent.console.activities import GROUP
from agent.ports import BrowserUnavailable
from agent.xvfb import Xvfb, XvfbUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found. It is well when there are no problems."""

    python: str
    playwright: str
    flows: str
    """What flows parse pages with; they need nothing else."""
    activities: tuple[str, ...] = ()
    """What is installed for flows to run, where AGENT_ACTIVITIES lists it."""
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

    @property
    def ok(self) -> bool:
        """Whether an agent would work here."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        found = asdict(self) | {
            name: list(getattr(self, name)) for name in ("problems", "notes", "activities")
        }
        return {"ok": self.ok, **found}

    def lines(self) -> list[str]:
        """Return it in words, a line each."""
        facts = {
            "python": self.python,
            "playwright": self.playwright,
            "flows": self.flows,
            "activities": ", ".join(self.activities) or None,
            "browser": self.executable or "none",
            "kind": self.kind,
            "product": self.product,
            "sandbox": None if self.sandbox is None else ("on" if self.sandbox else "off"),
            "start": None if self.start_ms is None else f"{self.start_ms:.0f} ms",
            "page": None if self.round_trip_ms is None else f"{self.round_trip_ms:.0f} ms",
            "windows": f"{self.headed} ({self.headed_executable})" if self.headed else "no",
        }
        return [
            *(f"{name:<11} {value}" for name, value in facts.items() if value is not None),
            *(f"note: {note}" for note in self.notes),
            *(f"problem: {problem}" for problem in self.problems),
        ]


async def examine(
    *,
    env: Mapping[str, str],
    headed: bool = False,
    install: bool = False,
    executable: str | None = None,
    sandbox: bool | None = None,
) -> Examination:
    """Find the browser an agent with these settings would use, start it and show one page.

    Never raises for what it finds, and changes nothing on the machine unless `install` is asked
    for; then it fetches a browser first, where none works.
    """
    facts: dict[str, Any] = {
        "python": sys.version.split()[0],
        "playwright": version("playwright"),
        "flows": f"turbohtml {version('turbohtml')}",
        "activities": tuple(sorted(point.name for point in entry_points(group=GROUP))),
    }
    problems: list[str] = []
    notes: list[str] = []
    screen = Xvfb() if headed and not env.get("DISPLAY") else None
    try:
        if install:
            await installing.install(headed=headed, env=env)
        facts |= await _headed(env, executable, problems if headed else notes)
        if screen is not None:
            env = {**env, "DISPLAY": await screen.start(env)}
        found = await find(headless=not headed, executable=executable, env=env, sandbox=sandbox)
        facts |= {
            "executable": found.executable,
            "kind": found.kind.value,
            "sandbox": found.sandbox,
        }
        facts |= await _page(found, env, headless=not headed)
        if not found.sandbox:
            notes.append(why_no_sandbox())
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


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
