"""What there is of windows and tabs, as the farm is told it and as `Stock` wants it."""

from collections import Counter
from collections.abc import Mapping

from agent.machine.state import Tab, TabState, Window
from agent.machine.stock import Room
from agent.machine.surroundings import Surroundings
from farm.protocol import messages as wire

_REPORTED: dict[TabState, wire.ContextState] = {
    TabState.OPENING: "loading",
    TabState.RESETTING: "loading",
    TabState.CRASHED: "crashed",
    TabState.CLOSING: "closing",
}


class Picture:
    """Looks at what `Tabs` keeps, and changes nothing of it."""

    def __init__(
        self, tabs: Mapping[str, Tab], windows: Mapping[str, Window], surroundings: Surroundings
    ) -> None:
        self._tabs = tabs
        self._windows = windows
        self._surroundings = surroundings

    def told(self) -> tuple[tuple[wire.WindowReport, ...], tuple[wire.ContextReport, ...]]:
        """Return all windows and tabs that are open, as a report says them."""
        there = [tab for tab in self._tabs.values() if tab.state is not TabState.OPENING]
        used = {tab.window_id for tab in there}
        windows = tuple(
            wire.WindowReport(
                window_id=window.window_id,
                identity=window.identity,
                profile=window.kind.profile,
                bounds=self._surroundings.bounds(window.window_id),
                prepared=window.prepared,
            )
            for window in self._windows.values()
            if window.window_id in used and not window.flow
        )
        windows += tuple(self._surroundings.windows())
        shown = {window.window_id for window in windows}
        # What was opened in a window that has closed since then is gone with it.
        others = (c for c in self._surroundings.contexts() if c.window_id in shown)
        return windows, (*(self._context(tab) for tab in there), *others)

    def _context(self, tab: Tab) -> wire.ContextReport:
        return wire.ContextReport(
            context_id=tab.context_id,
            window_id=self._window_of(tab),
            state=_REPORTED.get(tab.state) or self._shown(tab),
            clean=tab.state is TabState.IDLE and tab.token is None,
            token=tab.token,
        )

    def _window_of(self, tab: Tab) -> str | None:
        window = self._windows[tab.window_id]
        return None if window.flow else window.window_id

    def _shown(self, tab: Tab) -> wire.ContextState:
        """Tell whether its window shows it, which says nothing of whether anything runs."""
        if self._windows[tab.window_id].flow:
            return "idle"
        front = self._surroundings.front(tab.context_id)
        if front is None:
            there = [t for t in self._tabs.values() if t.window_id == tab.window_id]
            # The newest: tabs open in front of the others.
            front = [t for t in there if t.state is not TabState.OPENING][-1] is tab
        return "active" if front else "idle"

    def room(self) -> Room:
        """Return what there is of windows, for `Stock`."""
        windows, tabs = self._windows.values(), self._tabs.values()
        opening = [tab for tab in tabs if tab.state is TabState.OPENING]
        return Room(
            windows=len(windows),
            closing=sum(window.closing for window in windows),
            used_slots=sum(self._takes_a_slot(tab) for tab in tabs),
            outlasting=sum(tab.token is not None and self._outlasts(tab) for tab in tabs),
            prepared=Counter(w.kind.profile for w in windows if w.prepared and not w.closing),
            preparing=any(tab.command_id is None for tab in opening),
            awaited=any(tab.command_id is not None for tab in opening),
        )

    def _takes_a_slot(self, tab: Tab) -> bool:
        if tab.token is not None or (tab.state is TabState.OPENING and tab.command_id is not None):
            return True
        # An anonymous window that was asked for is about to be held.
        window = self._windows[tab.window_id]
        return window.identity is None and not window.prepared and not window.closing

    def _outlasts(self, tab: Tab) -> bool:
        window = self._windows[tab.window_id]
        return not window.closing and (window.identity is not None or window.kind.resets)
