"""Reservations that could not be given back when they were over."""

from collections.abc import Sequence

from farm.core.model import ReservationId

_MOST = 10_000
_TIMES = 10


class Unwanted:
    """Reservations that nobody wants and that may be open, or come to be.

    Redis may do what it was sent long after its answer was waited for. So each is to be given back
    ten times, and of more than ten thousand the latest are.
    """

    def __init__(self) -> None:
        self._left: dict[ReservationId, int] = {}
        """How often each is still to be given back."""

    def add(self, reservation_id: ReservationId) -> None:
        """Take note of one."""
        self._left[reservation_id] = _TIMES
        if len(self._left) > _MOST:
            del self._left[next(iter(self._left))]

    def all(self) -> Sequence[ReservationId]:
        """Return them."""
        return tuple(self._left)

    def given_back(self, reservation_ids: Sequence[ReservationId]) -> None:
        """Take note that these are not open now."""
        for one in reservation_ids:
            left = self._left.pop(one, 1) - 1
            if left > 0:
                self._left[one] = left
