"""When to start a browser again that has been lost: at once, unless it does not last."""

_LASTED_S = 30.0
"""A life of this length was none that failed."""
_FIRST_S, _LONGEST_S = 0.5, 30.0


class Restarts:
    """Counts lives in a row that were short."""

    def __init__(self) -> None:
        self._began = 0.0
        self._short = 0

    def began(self, now: float) -> None:
        """A life has begun."""
        self._began = now

    def lost(self, now: float) -> float | None:
        """A life has ended; return when to begin the next one, None for at once."""
        self._short = 0 if now - self._began >= _LASTED_S else self._short + 1
        if self._short < 2:
            return None
        return now + min(_LONGEST_S, _FIRST_S * (1 << min(self._short - 2, 10)))
