"""Finding an ffmpeg that can make the videos."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path

_ASK_S = 30.0
"""It answers at once; on a machine that is just starting everything it may take its time."""
_NEEDED = "libvpx"


async def find_ffmpeg(chosen: str | None, env: Mapping[str, str]) -> str | None:
    """Return the ffmpeg to use: the one that was set, else one on PATH, else Playwright's own.

    None where there is none with a VP8 encoder; then the agent records no video, and says so.
    """
    for path in _candidates(chosen, env):
        if await _encodes(path):
            return path
    return None


def _candidates(chosen: str | None, env: Mapping[str, str]) -> list[str]:
    if chosen is not None:
        found = shutil.which(chosen, path=env.get("PATH"))
        return [found] if found else []
    on_path = shutil.which("ffmpeg", path=env.get("PATH"))
    home = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/")) / ".cache")
    browsers = Path(env.get("PLAYWRIGHT_BROWSERS_PATH") or home / "ms-playwright")
    its_own = sorted(map(str, browsers.glob("ffmpeg-*/ffmpeg-linux")), reverse=True)
    return [*([on_path] if on_path else []), *its_own]


async def _encodes(path: str) -> bool:
    try:
        ffmpeg = await asyncio.create_subprocess_exec(
            path, "-hide_banner", "-encoders", stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env={}
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(_ASK_S):
            said, _ = await ffmpeg.communicate()
    except TimeoutError:
        return False
    finally:
        if ffmpeg.returncode is None:
            ffmpeg.kill()
    return _NEEDED in said.decode(errors="replace")
