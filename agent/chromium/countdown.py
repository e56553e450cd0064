"""A clock that can stand still."""

import asyncio
from collections.abc import Callable


class Countdown:
    """Calls back when so much time has passed while it went; it stands still to begin with."""

    def __init__(self, seconds: float, over: Callable[[], None]) -> None:
        self._seconds = seconds
        self._left = seconds
        self._over = over
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def go(self) -> None:
        """Go on, if it does not."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._left, self._over)

    def stop(self) -> None:
        """Stand still."""
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def reset(self) -> None:
        """Stand still, with all the time left."""
        self.stop()
        self._left = self._seconds
