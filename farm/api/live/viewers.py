"""One viewer: what it is to be sent next. Nothing is queued but the latest of everything."""

import asyncio
from collections import deque
from dataclasses import dataclass

from farm.api.live.links import Grant
from farm.protocol.live import Closed, Frame, Look, Refused

_REFUSALS = 20


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture as all viewers are sent it."""

    frame: Frame
    packed: bytes


class Viewer:
    """Somebody who looks at a tab."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self.name = grant.name
        """Made unlike those of others when it comes."""
        self.look: Look | None = None
        self.closed: Closed | None = None
        self.shown = 0
        """The last picture that it has drawn."""
        self._sent = 0
        self._due_at = 0.0
        self._refusals: deque[Refused] = deque(maxlen=_REFUSALS)
        self._stirred = asyncio.Event()

    @property
    def looks(self) -> bool:
        """Whether it wants pictures now."""
        return self.look is not None and self.look.fps > 0

    def stir(self) -> None:
        """There may be something new to send."""
        self._stirred.set()

    def refuse(self, what: str, why: str) -> None:
        """Something it asked for was not done."""
        self._refusals.append(Refused(what=what[:64], why=why[:500]))
        self.stir()

    def close(self, closed: Closed) -> None:
        """There is nothing more to be seen; the first reason counts."""
        self.closed = self.closed or closed
        self.stir()

    def refusals(self) -> list[Refused]:
        """Take what it has not been told yet."""
        taken = list(self._refusals)
        self._refusals.clear()
        return taken

    def due(self, shot: Shot | None, now: float) -> float | None:
        """Tell in how many seconds it is to be sent a picture; None is not before something moves.

        The next is sent only when the last has been drawn: a slow viewer misses pictures, and
        nobody keeps them for it.
        """
        if shot is None or self.look is None or not self.looks:
            return None
        if shot.frame.seq <= self._sent or self.shown < self._sent:
            return None
        return max(self._due_at - now, 0.0)

    def sent(self, shot: Shot, now: float) -> None:
        """It has been sent a picture."""
        self._sent = shot.frame.seq
        fps = 1.0 if self.look is None else max(self.look.fps, 0.01)
        self._due_at = now + 1 / fps

    async def stirred(self, within_s: float | None) -> None:
        """Wait until there may be something new, at most so long."""
        try:
            async with asyncio.timeout(within_s):
                await self._stirred.wait()
        except TimeoutError:
            return
        self._stirred.clear()
