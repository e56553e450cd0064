"""Pictures of one page as it changes, for people who watch: the latest one, and never a queue.

Chromium takes a next picture only when an earlier one has been acknowledged, so the rate is set
here, by when that is done. What changes in between it forgets, and tells nobody: if nothing
follows, the last change would never be seen. Two pictures may be out at a time, and what is changed
is forgotten only while both are. So where one picture was taken before another's acknowledgement
was answered, and none follows, the capture is begun anew: that gives a picture of the page as it
is. When it was taken, not when it has come, tells that: a busy machine delivers late.
"""

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from agent.chromium.between import once_attached
from agent.chromium.shielding import within
from agent.clock import monotonic, wall_clock
from farm.protocol.live import Want

_SETTLE_S = 0.15
"""So long after changes that may have been missed, a page that shows no other is looked at anew."""
_STOP_S = 1.0
_ANSWER_S = 5.0
_IN_FLIGHT = 2

_LADDER: tuple[tuple[int, float], ...] = ((75, 1.0), (55, 1.0), (50, 0.75), (40, 0.5))
"""(JPEG quality, share of the size), from what is finest to what is smallest."""
_SLOW_S = 0.35
_QUICK_S = 0.12
_QUICK_IN_A_ROW = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A JPEG, and how much of the page it shows, in the page's own pixels."""

    jpeg: bytes
    page_width: float
    page_height: float


class Fineness:
    """How fine pictures are, by how long the last ones took to be shown.

    It goes down at once, and up after many quick ones, so that it does not swing.
    """

    def __init__(self) -> None:
        self._rung = 0
        self._quick = 0

    @property
    def quality(self) -> int:
        """The JPEG's quality."""
        return _LADDER[self._rung][0]

    @property
    def scale(self) -> float:
        """The share of the size that is wanted."""
        return _LADDER[self._rung][1]

    def took(self, seconds: float) -> bool:
        """Take note of how long a picture took; tell whether the next are to be other ones."""
        before = self._rung
        if seconds > _SLOW_S:
            self._quick = 0
            self._rung = min(before + 1, len(_LADDER) - 1)
        elif seconds < _QUICK_S:
            self._quick += 1
        else:
            self._quick = 0
        if self._quick >= _QUICK_IN_A_ROW:
            self._quick = 0
            self._rung = max(before - 1, 0)
        return self._rung != before


async def begin_capture(
    session: CDPSession, *, quality: int, width: int, height: int, in_flight: int
) -> None:
    """Begin to capture a page anew.

    Raises:
        PlaywrightError: If the page is gone.
        TimeoutError: If it does not answer.
    """
    order = {
        "format": "jpeg",
        "quality": quality,
        "maxWidth": width,
        "maxHeight": height,
        "maxFramesInFlight": in_flight,
    }
    async with asyncio.timeout(_ANSWER_S):
        await once_attached(lambda: session.send("Page.stopScreencast"))
        await once_attached(lambda: session.send("Page.startScreencast", order))


class Screencast:
    """Captures from the first `want` until `run` is cancelled."""

    def __init__(self, session: CDPSession, show: Callable[[Picture], Awaitable[None]]) -> None:
        """`show` returns when somebody has seen the picture and there is room for the next."""
        self._session = session
        self._show = show
        self._want: Want | None = None
        self._fineness = Fineness()
        self._begin_anew = False
        self._latest: dict[str, Any] | None = None
        self._cast = 0
        self._out = 0
        """Pictures that have come and are not acknowledged."""
        self._room_since = 0.0
        """The wall clock's time when the last acknowledgement was answered."""
        self._news = asyncio.Event()
        session.on("Page.screencastFrame", self._on_frame)

    def want(self, want: Want) -> None:
        """Take pictures like these from now on."""
        before, self._want = self._want, want
        if before is None or (before.width, before.height) != (want.width, want.height):
            self._begin_anew = True
            self._news.set()

    async def run(self) -> None:
        """Capture and show, until cancelled.

        Raises:
            PlaywrightError: If the page is gone.
        """
        shown, missed = b"", False
        try:
            while True:
                event = await self._next(missed)
                if event is None:
                    missed = False
                    await self._begin()
                    continue
                began = monotonic()
                picture = _picture(event)
                if picture.jpeg != shown:
                    shown = picture.jpeg
                    await self._show(picture)
                    self._begin_anew |= self._fineness.took(monotonic() - began)
                await self._rest(began)
                missed = event["metadata"]["timestamp"] < self._room_since
                missed |= await self._acknowledge()
        finally:
            with contextlib.suppress(PlaywrightError):
                await within(_STOP_S, self._session.send("Page.stopScreencast"))

    async def _next(self, missed: bool) -> dict[str, Any] | None:
        """Return the next picture; None where the capture is to begin anew."""
        while not self._begin_anew:
            if (event := self._latest) is not None:
                self._latest = None
                return event
            self._news.clear()
            if not missed:
                await self._news.wait()
            elif not await within(_SETTLE_S, self._news.wait()):
                return None
        self._begin_anew = False
        return None

    async def _begin(self) -> None:
        self._latest, self._out = None, 0
        if self._want is None:
            return
        scale = self._fineness.scale
        try:
            await begin_capture(
                self._session,
                quality=self._fineness.quality,
                width=max(64, round(self._want.width * scale)),
                height=max(64, round(self._want.height * scale)),
                in_flight=_IN_FLIGHT,
            )
        except TimeoutError:
            self._begin_anew = True

    async def _rest(self, began: float) -> None:
        fps = 1.0 if self._want is None else self._want.fps
        if (rest := began + 1 / fps - monotonic()) > 0:
            await asyncio.sleep(rest)

    async def _acknowledge(self) -> bool:
        """Make room for pictures; tell whether one has come that nobody is shown."""
        missed, self._latest = self._latest is not None, None
        out, self._out = self._out, 0
        try:
            for _ in range(out):
                ack = self._session.send("Page.screencastFrameAck", {"sessionId": self._cast})
                self._begin_anew |= not await within(_ANSWER_S, ack)
        except PlaywrightError:
            self._begin_anew = True
        self._room_since = wall_clock()
        return missed

    def _on_frame(self, event: dict[str, Any]) -> None:
        self._cast = event["sessionId"]
        self._out += 1
        self._latest = event
        self._news.set()


def _picture(event: dict[str, Any]) -> Picture:
    metadata = event["metadata"]
    return Picture(
        jpeg=base64.b64decode(event["data"]),
        page_width=metadata["deviceWidth"],
        page_height=metadata["deviceHeight"],
    )
