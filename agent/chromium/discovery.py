"""Finding a browser that works: the one function behind agent, tests and doctor.

Nothing here changes the machine; `installing` does.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

import playwright
import structlog

from agent.chromium.driver import Driver
from agent.chromium.trial import LaunchFailed, Trial, attempt
from agent.ports import BrowserUnavailable

_log = structlog.get_logger(__name__)

REMEDY = "`make` or `farm doctor --install` fetches a browser; AGENT_BROWSER names one"
_SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
_FULL = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Kind(StrEnum):
    """What an executable can do: a shell shows no windows and costs a third of a full browser."""

    SHELL = "headless-shell"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A browser that has been launched here and has shown a page."""

    executable: str
    kind: Kind
    sandbox: bool
    """Whether it works with Chromium's sandbox, by this user on this kernel."""
    disabled: tuple[str, ...] = ()
    """The features Playwright turns off, to be repeated where ours are added."""


async def find(
    *,
    headless: bool,
    executable: str | None = None,
    env: Mapping[str, str],
    sandbox: bool | None = None,
) -> Found:
    """Return the browser to use.

    In order: the one that was set (`executable`, else `AGENT_BROWSER`), and then no other; for
    headless use any headless shell, Playwright's own first; Playwright's own Chromium; a Chromium
    or Chrome on PATH. One that worked before is believed until its file or Playwright changes.

    Args:
        headless: Whether it will be started without windows.
        executable: A path, or a name on PATH.
        env: The environment of the agent.
        sandbox: Demand or refuse Chromium's sandbox; None takes it where it works.

    Raises:
        BrowserUnavailable: If none works; names each one tried, why it failed and what would help.
    """
    chosen = executable or env.get("AGENT_BROWSER") or None
    candidates = [_chosen(chosen, headless, env)] if chosen else list(_candidates(headless, env))
    sandboxes = _sandboxes(sandbox)
    cache = _Cache(env)
    failures: list[str] = []
    async with _Trials(env) as trials:
        for path in candidates:
            trial = cache.recall(path, sandboxes)
            try:
                if trial is None:
                    trial = await attempt(await trials.driver(), path, env=env, sandboxes=sandboxes)
            except LaunchFailed as error:
                _log.info("browser.unfit", executable=path, reason=str(error))
                failures.append(f"{path}: {error}")
                continue
            cache.keep(path, sandboxes, trial)
            return Found(
                executable=path, kind=kind_of(path), sandbox=trial.sandbox, disabled=trial.disabled
            )
    raise BrowserUnavailable(
        _account(failures, headless=headless, chosen=bool(chosen), sandbox=sandbox is True)
    )


def kind_of(path: str) -> Kind:
    """Tell a headless shell from a full browser, by its name."""
    names = (Path(path).name, Path(path).resolve().name)
    shell = any(mark in name for name in names for mark in ("headless-shell", "headless_shell"))
    return Kind.SHELL if shell else Kind.FULL


def _chosen(name: str, headless: bool, env: Mapping[str, str]) -> str:
    path = shutil.which(name, path=env.get("PATH"))
    if path is None:
        raise BrowserUnavailable(f"AGENT_BROWSER={name}: there is no such executable")
    if not headless and kind_of(path) is Kind.SHELL:
        raise BrowserUnavailable(f"AGENT_BROWSER={name}: a headless shell can show no windows")
    return path


def _candidates(headless: bool, env: Mapping[str, str]) -> Iterator[str]:
    own = _playwright_folder(env)
    if headless:
        yield from _newest(own, "chromium_headless_shell-*/*/chrome-headless-shell")
        yield from _newest(own, "chromium_headless_shell-*/*/headless_shell")
        yield from _on_path(_SHELLS, env)
    yield from _newest(own, "chromium-*/chrome-linux*/chrome")
    yield from _on_path(_FULL, env)


def _playwright_folder(env: Mapping[str, str]) -> Path:
    said = env.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if said == "0":
        return Path(playwright.__file__).parent / "driver" / "package" / ".local-browsers"
    return Path(said) if said else _cache_folder(env) / "ms-playwright"


def _newest(folder: Path, pattern: str) -> list[str]:
    def revision(path: Path) -> int:
        number = path.relative_to(folder).parts[0].rpartition("-")[2]
        return int(number) if number.isdigit() else 0

    return [str(path) for path in sorted(folder.glob(pattern), key=revision, reverse=True)]


def _on_path(names: tuple[str, ...], env: Mapping[str, str]) -> Iterator[str]:
    for name in names:
        if (path := shutil.which(name, path=env.get("PATH"))) is not None:
            yield path


def _sandboxes(wanted: bool | None) -> tuple[bool, ...]:
    if wanted is not None:
        return (wanted,)
    return (False,) if os.geteuid() == 0 else (True, False)


def why_no_sandbox() -> str:
    """Tell what Chromium's sandbox lacks where it does not work, and what would help."""
    if os.geteuid() == 0:
        return "Chromium's sandbox is off: root cannot have it; run the agent as another user"
    return (
        "Chromium's sandbox does not work here: it needs unprivileged user namespaces, "
        "or a chrome-sandbox helper that is setuid root"
    )


def _account(failures: list[str], *, headless: bool, chosen: bool, sandbox: bool) -> str:
    names = (*(_SHELLS if headless else ()), *_FULL)
    searched = f"searched: Playwright's own browsers, and {', '.join(names)} on PATH"
    lines = ["no browser that works was found", *([] if chosen else [searched]), *failures]
    if sandbox and failures:
        lines[0] = "no browser that works with Chromium's sandbox was found"
        remedy = f"AGENT_SANDBOX=1 demands it. {why_no_sandbox()}"
    else:
        remedy = REMEDY
    return "\n".join([*lines, remedy])


def _cache_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or Path.home()) / ".cache")


class _Trials:
    """Starts the driver for the first trial, and ends it after the last."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._driver: Driver | None = None

    async def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._env)
            await self._driver.start()
        return self._driver

    async def __aenter__(self) -> "_Trials":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._driver is not None:
            await self._driver.stop()


class _Cache:
    """Trials that went well, in a file of the user's. Losing it costs a second."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._file = _cache_folder(env) / "tabfarm" / "browsers.json"

    def recall(self, path: str, sandboxes: tuple[bool, ...]) -> Trial | None:
        known = self._read().get(_key(path, sandboxes))
        try:
            return Trial(sandbox=bool(known["sandbox"]), disabled=tuple(known["disabled"]))  # type: ignore[index]  # a file anybody may have changed
        except (TypeError, KeyError):
            return None

    def keep(self, path: str, sandboxes: tuple[bool, ...], trial: Trial) -> None:
        known = self._read()
        entry = {"sandbox": trial.sandbox, "disabled": list(trial.disabled)}
        if known.get(key := _key(path, sandboxes)) == entry:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(known | {key: entry}, indent=1))
            fresh.replace(self._file)

    def _read(self) -> dict[str, object]:
        try:
            known = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def _key(path: str, sandboxes: tuple[bool, ...]) -> str:
    changed = Path(path).stat().st_mtime_ns if Path(path).exists() else 0
    tried = "+".join("sandbox" if sandbox else "none" for sandbox in sandboxes)
    return f"{path}|{changed}|{version('playwright')}|{tried}"
