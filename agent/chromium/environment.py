"""What of our environment the driver and Chromium are given: an allow-list, and no secret."""

from collections.abc import Mapping
from pathlib import Path

_CHROMIUM = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "DISPLAY", "XAUTHORITY", "CHROME_DEVEL_SANDBOX"}
)
_CHROMIUM_PREFIXES = ("LC_", "FONTCONFIG_")
_DRIVER_PREFIXES = ("PLAYWRIGHT_", "PW_", "NODE_", "DEBUG")


def for_chromium(env: Mapping[str, str], *, home: Path, temporary: Path) -> dict[str, str]:
    """Return Chromium's environment: pages could read it, were one to break out of its renderer."""
    kept = {
        name: value
        for name, value in env.items()
        if name in _CHROMIUM or name.startswith(_CHROMIUM_PREFIXES)
    }
    if "DISPLAY" in kept and "XAUTHORITY" not in kept and "HOME" in env:
        # The X libraries look for the cookie in HOME, and HOME is another one there.
        cookie = Path(env["HOME"]) / ".Xauthority"
        if cookie.exists():
            kept["XAUTHORITY"] = str(cookie)
    return kept | {"HOME": str(home), "TMPDIR": str(temporary)}


def for_driver(env: Mapping[str, str], *, temporary: Path) -> dict[str, str]:
    """Return the environment of Playwright's driver, which makes the profile in `TMPDIR`."""
    kept = {
        name: value
        for name, value in env.items()
        if name in _CHROMIUM
        or name.startswith((*_CHROMIUM_PREFIXES, *_DRIVER_PREFIXES))
        or name in ("HOME", "XDG_CACHE_HOME")
    }
    return kept | {"TMPDIR": str(temporary)}
