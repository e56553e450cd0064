"""Windows opened before anybody asks: of which options, how many, and when.

They are reported as what they are, idle and clean, so the farm lends one at once where the options
are those asked for. They only ever use room that nobody else could want: for each free slot there
stays room for a window of other options, so whoever asks for one is never refused because of them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from farm.protocol import messages as wire
from farm.protocol.plan import PLAIN, BrowserOptions, profile_of

_PAUSE_S = 5.0
"""How long it is left alone after a window could not be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a window is opened with, and how the farm names that."""

    profile: str
    options: BrowserOptions
    resets: bool = False
    """It may be cleaned and lent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What there is of windows at one moment."""

    windows: int = 0
    """All of them, those being opened or closed included."""
    closing: int = 0
    used_slots: int = 0
    """Slots that are held, or about to be."""
    outlasting: int = 0
    """Those of them that are held in a window that stays when they are free again."""
    prepared: Counter[str] = field(default_factory=Counter)
    """Windows nobody has had yet, by profile; those being prepared included."""
    preparing: bool = False
    awaited: bool = False
    """Somebody waits for a window or tab that is being opened."""


class Stock:
    """Decides what to open ahead, and when there is too much of it."""

    def __init__(self, number: int, others: Sequence[BrowserOptions] = ()) -> None:
        """Keep `number` windows of the plain options, of each of `others`, and as asked last."""
        self._number = number
        self._kinds = [
            Kind(profile=profile_of(options), options=options) for options in (PLAIN, *others)
        ]
        self._asked: Kind | None = None
        self._paused_until = 0.0

    def asked(self, kind: Kind) -> None:
        """Note what somebody has asked for: the next one may want the same."""
        self._asked = kind

    def failed(self, now: float) -> None:
        """One could not be opened; the browser is left alone for a while."""
        self._paused_until = now + _PAUSE_S

    def missing(self, room: Room, capacity: wire.Capacity, now: float) -> Kind | None:
        """Say what to open now, if anything: one at a time, and never while somebody waits."""
        if room.preparing or room.awaited or now < self._paused_until:
            return None
        # Not into room that is gone when a kept window is free again, or each job would open one,
        # and its end close it.
        free = _free_slots(room, capacity) + room.outlasting
        if room.windows + 1 + free > capacity.max_windows:
            return None
        fewest = min(self._wanted(), key=lambda kind: room.prepared[kind.profile])
        return fewest if room.prepared[fewest.profile] < self._number else None

    def too_many(self, room: Room, capacity: wire.Capacity) -> bool:
        """Tell whether one has to go, to leave room for what may be asked for."""
        there = room.windows - room.closing
        return there + _free_slots(room, capacity) > capacity.max_windows

    def wants(self, profile: str) -> int:
        """Tell how much such windows are to be kept ready: most of all what was asked for last."""
        asked = self._asked is not None and self._asked.profile == profile
        return asked + any(kind.profile == profile for kind in self._wanted())

    def _wanted(self) -> list[Kind]:
        last = self._asked
        if last is None or any(kind.profile == last.profile for kind in self._kinds):
            return self._kinds
        return [last, *self._kinds]


def _free_slots(room: Room, capacity: wire.Capacity) -> int:
    return max(0, (capacity.max_concurrency or 1) - room.used_slots)
