"""What there is in the browser beside the tabs the farm has asked for, and which tabs are in front.

People open windows of their own; pages and people open tabs in the windows of workers. Both get
names here, so that reports can tell of them. Nothing else is ever done with them.
"""

from collections.abc import Callable, Iterator

from agent.machine import events as ev
from farm.protocol import messages as wire

_SOON_S = 0.05
"""What comes and goes at one moment is looked at once."""


class Surroundings:
    """The windows and tabs of one epoch, as they were seen last."""

    def __init__(self, name_tab: Callable[[], str]) -> None:
        """`name_tab` gives the next name of a tab."""
        self._name_tab = name_tab
        self.clear()

    def clear(self) -> None:
        """Know nothing, as when an epoch begins."""
        self._seen: tuple[ev.SeenWindow, ...] = ()
        self._names: dict[str, str] = {}
        self._user_windows_made = 0

    def see(self, windows: tuple[ev.SeenWindow, ...]) -> bool:
        """Take in what is there; tell whether that is anything new."""
        changed, self._seen = windows != self._seen, windows
        there = [window.key for window in windows if window.window_id is None]
        there += [tab.key for window in windows for tab in window.tabs]
        self._names = {key: name for key, name in self._names.items() if key in there}
        for window in windows:
            if window.window_id is None and window.key not in self._names:
                self._user_windows_made += 1
                self._names[window.key] = f"U{self._user_windows_made}"
            for tab in window.tabs:
                if tab.context_id is None and tab.key not in self._names:
                    self._names[tab.key] = self._name_tab()
        return changed

    @property
    def user_windows(self) -> int:
        """How many windows people have opened."""
        return sum(window.window_id is None for window in self._seen)

    def windows(self) -> Iterator[wire.WindowReport]:
        """Return the windows people have opened."""
        for window in self._seen:
            if window.window_id is None:
                yield wire.WindowReport(
                    window_id=self._names[window.key], owner="user", bounds=window.bounds
                )

    def contexts(self) -> Iterator[wire.ContextReport]:
        """Return the tabs that the farm has not asked for."""
        for window in self._seen:
            for tab in window.tabs:
                if tab.context_id is None:
                    yield self._context(window, tab)

    def _context(self, window: ev.SeenWindow, tab: ev.SeenTab) -> wire.ContextReport:
        state: wire.ContextState = "active" if tab.front else "idle"
        return wire.ContextReport(
            context_id=self._names[tab.key],
            window_id=window.window_id or self._names[window.key],
            owner="user" if window.window_id is None else "worker",
            state="crashed" if tab.crashed else state,
            clean=False,
            opener=tab.opener,
        )

    def bounds(self, window_id: str) -> wire.Bounds | None:
        """Return where a worker's window is."""
        for window in self._seen:
            if window.window_id == window_id and any(tab.context_id for tab in window.tabs):
                return window.bounds
        return None

    def front(self, context_id: str) -> bool | None:
        """Tell whether a worker's tab is the one its window shows; None if it was not seen yet."""
        for window in self._seen:
            for tab in window.tabs:
                if tab.context_id == context_id:
                    return tab.front
        return None


class Looks:
    """When to look at the browser: soon after something has stirred, and now and then.

    That another tab has come to the front, or a window has moved, is told by nothing.
    """

    def __init__(self, every_s: float | None) -> None:
        """Look every so often; None is only after something has stirred."""
        self._every_s = every_s
        self.clear()

    def clear(self) -> None:
        """Wait for nothing, as when an epoch begins."""
        self._looking = False
        self._due: float | None = None

    def stir(self, now: float) -> None:
        """Something has come or gone."""
        soon = now + _SOON_S
        self._due = soon if self._due is None else min(self._due, soon)

    def is_due(self, now: float) -> bool:
        """Tell whether to look now; if so, that is taken as done."""
        if self._due is None and self._every_s is not None:
            self._due = now + self._every_s
        if self._looking or self._due is None or now < self._due:
            return False
        self._looking, self._due = True, None
        return True

    def looked(self) -> bool:
        """A look has ended; tell whether it was awaited."""
        was, self._looking = self._looking, False
        return was
