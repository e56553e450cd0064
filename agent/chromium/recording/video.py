"""Video of a tab: pictures as Chromium casts them, encoded by ffmpeg as they come.

Only what changes on the page costs anything: a picture is cast when there is a new one, at most
`RATE` a second, and lasts in the video until the next. ffmpeg ends with us, however we end, because
it reads the end of its input then.
"""

import asyncio
import base64
import contextlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from agent.chromium.recording import checks
from agent.chromium.recording.recorder import RecordingFailed
from agent.chromium.screencast import begin_capture
from agent.clock import monotonic
from farm.protocol.recordings import RecordingKind

RATE = 10
"""Pictures a second, at most."""
WIDTH, HEIGHT = 1280, 800
"""The largest picture."""
_QUALITY = 70
_ENCODE_S = 8.0
"""How long the encoder may take to finish."""
_FIT = (
    "scale={w}:{h}:force_original_aspect_ratio=decrease:force_divisible_by=2,"
    "pad={w}:{h}:(ow-iw)/2:(oh-ih)/2:white"
)


class VideoRecorder:
    """A WebM of the attempt's tab; the pages it opens are not in it."""

    kind = RecordingKind.VIDEO
    wants_window = False

    def __init__(self, page: Page, path: Path, ffmpeg: str | None) -> None:
        self._page = page
        self._path = path
        self._ffmpeg = ffmpeg
        self._encoder: Process | None = None
        self._session: CDPSession | None = None
        self._begin: Callable[[], Awaitable[None]]
        self._last: bytes | None = None
        self._stopped = False
        self._feeding = asyncio.Lock()

    async def start(self) -> None:
        """See `Recorder`."""
        if self._ffmpeg is None:
            raise RecordingFailed("there is no ffmpeg that can encode it")
        width, height = await self._dimensions()
        self._encoder = await asyncio.create_subprocess_exec(
            self._ffmpeg,
            *_arguments(_FIT.format(w=width, h=height), self._path),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            env={},
        )
        self._session = await self._page.context.new_cdp_session(self._page)
        self._session.on("Page.screencastFrame", self._on_frame)
        self._begin = partial(
            begin_capture,
            self._session,
            quality=_QUALITY,
            width=width,
            height=height,
            in_flight=1,
        )
        await self._begin()

    async def size(self) -> int:
        """See `Recorder`."""
        try:
            return (await asyncio.to_thread(self._path.stat)).st_size
        except FileNotFoundError:
            return 0

    async def stop(self) -> None:
        """See `Recorder`; what the encoder has is finished in any case."""
        if self._stopped:
            return
        self._stopped = True
        if self._session is not None:
            with contextlib.suppress(PlaywrightError):  # the page may be gone
                await self._session.send("Page.stopScreencast")
                await self._session.detach()
        if self._encoder is None:
            return
        try:
            async with asyncio.timeout(_ENCODE_S):
                if self._last is not None:
                    await self._feed(self._last)  # it lasts until now
                await self._finish(self._encoder)
        except TimeoutError:
            raise RecordingFailed("the encoder did not finish in time") from None
        finally:
            if self._encoder.returncode is None:
                self._encoder.kill()

    async def keep(self) -> Path:
        """See `Recorder`."""
        if self._last is None:
            raise RecordingFailed("the page showed nothing")
        await asyncio.to_thread(checks.check_video, self._path)
        return self._path

    async def _dimensions(self) -> tuple[int, int]:
        script = "[innerWidth, innerHeight]"
        size = self._page.viewport_size
        wide, high = (size["width"], size["height"]) if size else await self._page.evaluate(script)
        scale = min(1.0, WIDTH / max(wide, 1), HEIGHT / max(high, 1))
        return max(2, int(wide * scale) // 2 * 2), max(2, int(high * scale) // 2 * 2)

    async def _on_frame(self, frame: dict[str, Any]) -> None:
        began = monotonic()
        picture = base64.b64decode(frame["data"])
        if self._stopped:
            return
        with contextlib.suppress(PlaywrightError, TimeoutError, OSError):
            await self._feed(picture)
            await asyncio.sleep(max(0.0, 1 / RATE - (monotonic() - began)))
            if self._session is not None and not self._stopped:
                ack = {"sessionId": frame["sessionId"]}
                try:
                    await self._session.send("Page.screencastFrameAck", ack)
                except PlaywrightError:
                    await self._begin()

    async def _feed(self, picture: bytes) -> None:
        encoder = self._encoder
        if encoder is None or encoder.stdin is None or encoder.stdin.is_closing():
            return
        async with self._feeding:
            self._last = picture
            encoder.stdin.write(picture)
            await encoder.stdin.drain()

    async def _finish(self, encoder: Process) -> None:
        if encoder.stdin is not None:
            encoder.stdin.close()
        _, said = await encoder.communicate()
        if encoder.returncode:
            words = said.decode(errors="replace").strip().splitlines() or ["without a word"]
            raise RecordingFailed(f"the encoder failed: {words[-1][:300]}")


def _arguments(fit: str, path: Path) -> tuple[str, ...]:
    source = "-f image2pipe -use_wallclock_as_timestamps 1 -avioflags direct -fpsprobesize 0"
    source += " -probesize 32 -analyzeduration 0 -c:v mjpeg -i pipe:0"
    encode = "-y -an -c:v libvpx -deadline realtime -speed 8 -qmin 0 -qmax 50 -crf 8 -b:v 1M"
    timing = f"-threads 1 -fps_mode vfr -r {RATE} -f webm"
    head = ("-hide_banner", "-loglevel", "error", *source.split())
    return (*head, *encode.split(), *timing.split(), "-vf", fit, str(path))
