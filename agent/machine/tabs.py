"""The tabs and windows of one epoch, and what may become of them."""

from agent.machine import events as ev
from agent.machine.events import Instruction
from agent.machine.picture import Picture
from agent.machine.recycling import Recycling
from agent.machine.state import Tab, TabState, Window
from agent.machine.stock import Kind, Room, Stock
from agent.machine.surroundings import Surroundings
from farm.protocol import messages as wire
from farm.protocol.plan import PLAIN


class Tabs:
    """`changed` tells that the farm has not been told the present picture.

    It is `urgent` where somebody may wait for it: something has become free, or is gone.
    """

    def __init__(self, *, identity_idle_s: float) -> None:
        self._identity_idle_s = identity_idle_s
        self._tabs: dict[str, Tab] = {}
        self._windows: dict[str, Window] = {}
        self._last_token: dict[str, wire.Token] = {}
        self._claims: dict[str, str] = {}
        """Commands that have been given a window that is being prepared, by its tab."""
        self._windows_made = 0
        self._tabs_made = 0
        self._surroundings = Surroundings(self._name_tab)
        self._picture = Picture(self._tabs, self._windows, self._surroundings)
        self.changed = False
        self.urgent = False

    def touch(self) -> None:
        """Let the picture be told again, at once."""
        self.changed = self.urgent = True

    def picture(self) -> tuple[tuple[wire.WindowReport, ...], tuple[wire.ContextReport, ...]]:
        """Return all windows and tabs that are open, as a report says them."""
        self.changed = self.urgent = False
        return self._picture.told()

    def there(self, context_id: str) -> bool:
        """Tell whether a tab is open, with a page that can be looked at."""
        tab = self._tabs.get(context_id)
        if tab is None or tab.gone:
            return False
        return tab.state in (TabState.IDLE, TabState.BUSY)

    def see(self, windows: tuple[ev.SeenWindow, ...]) -> None:
        """Take in which windows and tabs there are, those that were not asked for too."""
        if self._surroundings.see(windows):
            self.touch()

    @property
    def user_windows(self) -> int:
        """How many windows people have opened for themselves, as seen last."""
        return self._surroundings.user_windows

    # Opening

    def open_window(self, command_id: str, body: wire.OpenWindow, now: float) -> Tab:
        """Name a window and its first tab that are to be opened."""
        window = self._new_window(body.identity, kind_of(body), now)
        return self._new_tab(command_id, window.window_id)

    def prepare(self, kind: Kind, now: float) -> Tab:
        """Name a window and its first tab that are to be opened before anybody asks."""
        window = self._new_window(None, kind, now)
        window.prepared = True
        return self._new_tab(None, window.window_id)

    def claim(self, command_id: str, body: wire.OpenWindow) -> Tab | None:
        """Give who asks for a window the one that is just being prepared, if it is the like.

        One that is there already is not given in this way: the farm knows it, may be about to
        lend it, and has a reason to ask for another.
        """
        for tab in self._tabs.values():
            window = self._windows[tab.window_id]
            like = window.kind == kind_of(body)
            if _is_being_prepared(tab) and like and body.identity is None:
                window.prepared, tab.command_id = False, command_id
                self._claims[tab.context_id] = command_id
                return tab
        return None

    def prepared(self, context_id: str, now: float) -> str | None:
        """What was to be prepared is there; return the command that has claimed it meanwhile."""
        tab = self._tabs.get(context_id)
        if tab is not None and _is_being_prepared(tab):
            tab.state = TabState.IDLE
            self._windows[tab.window_id].used_at = now
            self.touch()
        return self._claims.pop(context_id, None)

    def prepare_failed(self, context_id: str) -> str | None:
        """It could not be opened; return the command that has claimed it meanwhile."""
        self.tab_gone(context_id)
        return self._claims.pop(context_id, None)

    def _new_window(self, identity: str | None, kind: Kind, now: float) -> Window:
        self._windows_made += 1
        window = Window(
            window_id=f"W{self._windows_made}",
            identity=identity,
            kind=kind,
            used_at=now,
            opened_at=now,
        )
        self._windows[window.window_id] = window
        return window

    def open_tab(self, command_id: str, window_id: str) -> Tab | None:
        """Name a tab that is to be opened in a window; None if there is no such window."""
        window = self._windows.get(window_id)
        if window is None or window.closing:
            return None
        return self._new_tab(command_id, window_id)

    def open_flow(self, command_id: str, now: float) -> Tab:
        """Name a flow; there is nothing to be opened for one."""
        self._tabs_made += 1
        name = f"F{self._tabs_made}"
        self._windows[name] = Window(
            window_id=name,
            identity=None,
            kind=Kind(profile="", options=PLAIN),
            used_at=now,
            flow=True,
        )
        tab = self._tabs[name] = Tab(context_id=name, window_id=name, command_id=command_id)
        return tab

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return sum(window.flow for window in self._windows.values())

    def _new_tab(self, command_id: str | None, window_id: str) -> Tab:
        tab = Tab(context_id=self._name_tab(), window_id=window_id, command_id=command_id)
        self._tabs[tab.context_id] = tab
        return tab

    def _name_tab(self) -> str:
        self._tabs_made += 1
        return f"T{self._tabs_made}"

    def opened(self, command_id: str, now: float) -> Tab | None:
        """A tab has been opened; None if it is gone again."""
        tab = self._opening(command_id)
        if tab is None:
            return None
        tab.state, tab.command_id = TabState.IDLE, None
        self._windows[tab.window_id].used_at = now
        self.touch()
        return tab

    def open_failed(self, command_id: str) -> None:
        """A tab could not be opened."""
        tab = self._opening(command_id)
        if tab is not None:
            self.tab_gone(tab.context_id)

    def _opening(self, command_id: str) -> Tab | None:
        for tab in self._tabs.values():
            if tab.command_id == command_id and tab.state is TabState.OPENING:
                return tab
        return None

    # Assignments

    def hold(self, context_id: str, token: wire.Token, command_id: str, now: float) -> str | None:
        """Take a tab for a run under a token; or say why not (P8)."""
        tab = self._tabs.get(context_id)
        if tab is None:
            return "unknown_context"
        if self._is_old(context_id, token):
            return "stale"
        if tab.state is not TabState.IDLE or tab.token is not None:
            return "busy"
        self._last_token[context_id] = token
        tab.state, tab.token, tab.command_id = TabState.BUSY, token, command_id
        window = self._windows[tab.window_id]
        window.used_at, window.prepared, tab.reset = now, False, False
        window.uses += 1
        self.changed = True
        return None

    def deny(self, context_id: str, token: wire.Token) -> str | None:
        """Say why the holder of a token may not have anything done for a tab (P8), or None."""
        tab = self._tabs.get(context_id)
        if tab is None:
            return "unknown_context"
        return "stale" if tab.token != token and self._is_old(context_id, token) else None

    def _is_old(self, context_id: str, token: wire.Token) -> bool:
        last = self._last_token.get(context_id)
        return last is not None and (token.store_epoch, token.counter) <= (
            last.store_epoch,
            last.counter,
        )

    def run_ended(self, context_id: str, *, page_gone: bool) -> None:
        """The run on a tab is over; the tab stays held until the farm releases it."""
        tab = self._tabs.get(context_id)
        if tab is None:
            return
        tab.command_id = None
        # A tab that is gone is still reported while its assignment holds: its result, not its
        # absence, is what ends the attempt.
        if page_gone and not self._windows[tab.window_id].flow:
            tab.state, tab.gone = TabState.CLOSING, True
        elif tab.state is TabState.BUSY:  # else it has crashed or gone meanwhile
            tab.state = TabState.IDLE
        self.changed = True

    def release(self, context_id: str, token: wire.Token | None, now: float) -> list[Instruction]:
        """The assignment has ended: what was used of it closes, or is offered as new."""
        tab = self._tabs.get(context_id)
        if tab is None or (tab.token is not None and tab.token != token):
            return []
        if tab.token is None and self._is_over_already(tab, token):
            return []
        if token is not None:
            # Its token has ended: a run under it that comes late is not begun.
            self._last_token[context_id] = token
        window = self._windows[tab.window_id]
        # Not used under it: the farm has heard that it is clean, and may have lent it anew.
        tab.reset |= token is not None and tab.token is None
        tab.token = None
        self.changed = True
        if tab.gone:
            self._forget(tab)
            self.touch()
            return []
        window.used_at = now
        if window.identity is None and not window.flow:
            return self._release_anonymous(window, tab)
        if tab.state is TabState.CRASHED:
            tab.state = TabState.CLOSING
            return [ev.CloseTab(context_id)]
        self.touch()
        return []

    def _release_anonymous(self, window: Window, tab: Tab) -> list[Instruction]:
        if tab.state is TabState.RESETTING:
            return []
        if tab.state is TabState.IDLE and tab.reset:
            return self._offer(window)
        return self._close_window(window)

    def _offer(self, window: Window) -> list[Instruction]:
        """A window is as new, and nobody holds it: whoever asks for the like may have it."""
        window.prepared = True
        self.touch()
        return []

    def reset(self, context_id: str, *, clean: bool, now: float) -> list[Instruction]:
        """A tab is as new, or its window has to go."""
        tab = self._tabs.get(context_id)
        if tab is None or tab.state is not TabState.RESETTING:
            return []
        window = self._windows[tab.window_id]
        if not clean:
            return self._close_window(window)
        tab.state, tab.reset, window.used_at = TabState.IDLE, True, now
        return self._offer(window) if tab.token is None else []

    def retire(self, context_id: str, recycling: Recycling, now: float) -> list[Instruction]:
        """Nothing more is run under a tab's assignment: clean or close an anonymous window."""
        tab = self._tabs.get(context_id)
        if tab is None or tab.state is not TabState.IDLE:
            return []
        window = self._windows[tab.window_id]
        if window.identity is not None or window.flow:
            return []
        if not window.kind.resets or recycling.worn(window.uses, window.opened_at, now):
            return self._close_window(window)
        tab.state = TabState.RESETTING
        return [ev.ResetTab(context_id)]

    def _is_over_already(self, tab: Tab, token: wire.Token | None) -> bool:
        # Nobody has it; where it is closing, its end is told when it comes.
        if tab.state in (TabState.OPENING, TabState.CLOSING):
            return True
        return token is not None and self._is_old(tab.context_id, token)

    def give_up(self) -> list[Instruction]:
        """Hold nothing any more: the farm may take us for gone."""
        instructions: list[Instruction] = []
        for tab in [t for t in self._tabs.values() if t.token is not None]:
            if tab.command_id is None:
                instructions += self.release(
                    tab.context_id, tab.token, self._windows[tab.window_id].used_at
                )
        return instructions

    def close_idle(self, now: float) -> list[Instruction]:
        """Close what nobody has used for long: windows of identities, and those offered again."""
        instructions: list[Instruction] = []
        for window in list(self._windows.values()):
            unused = now - window.used_at > self._identity_idle_s
            free = all(tab.state is TabState.IDLE and tab.token is None for tab in self._in(window))
            lent_before = any(tab.reset for tab in self._in(window))
            kept = window.flow or (window.prepared and not lent_before)
            if unused and free and not window.closing and not kept:
                instructions += self._close_window(window)
        return instructions

    def close_worn(self, recycling: Recycling, now: float) -> list[Instruction]:
        """Close a window that waits for somebody and has served long enough: one at a time."""
        if any(window.closing for window in self._windows.values()):
            return []
        for window in self._windows.values():
            free = all(tab.state is TabState.IDLE and tab.token is None for tab in self._in(window))
            worn = recycling.worn(window.uses, window.opened_at, now)
            if window.prepared and free and worn:
                return self._close_window(window)
        return []

    def keeps_something(self) -> bool:
        """Tell whether it has what a new browser would not: kept identities, people's windows."""
        named = any(w.identity is not None and not w.closing for w in self._windows.values())
        return named or self.user_windows > 0

    def held(self) -> bool:
        """Tell whether any tab is lent, or being opened or made clean."""
        busy = (TabState.OPENING, TabState.BUSY, TabState.RESETTING)
        return any(tab.token is not None or tab.state in busy for tab in self._tabs.values())

    def close_prepared(self, stock: Stock, *, most: int | None = None) -> list[Instruction]:
        """Close windows nobody has had, those least wanted first; all of them without `most`."""
        there = [
            window
            for window in self._windows.values()
            if window.prepared and not any(_is_being_prepared(tab) for tab in self._in(window))
        ]
        # The farm lends what comes first by name, so it is least likely to want what comes last.
        there.sort(key=lambda window: window.window_id, reverse=True)
        there.sort(key=lambda window: stock.wants(window.kind.profile))
        return [order for window in there[:most] for order in self._close_window(window)]

    def _close_window(self, window: Window) -> list[Instruction]:
        if window.closing:
            return []
        window.closing = True
        for tab in self._in(window):
            tab.state = TabState.CLOSING
        self.changed = True
        if window.prepared:
            self.touch()  # the farm may be about to lend it
        return [ev.CloseWindow(window.window_id)]

    # What happens by itself

    def tab_gone(self, context_id: str) -> None:
        """A tab is closed."""
        tab = self._tabs.get(context_id)
        if tab is None:
            return
        if tab.token is not None:
            tab.state, tab.gone, self.changed = TabState.CLOSING, True, True
            return
        if tab.state is not TabState.OPENING:  # else it is in no picture
            self.touch()
        self._forget(tab)

    def tab_crashed(self, context_id: str) -> list[Instruction]:
        """A tab's renderer is dead; a window nobody has had yet goes with it."""
        tab = self._tabs.get(context_id)
        if tab is None or tab.state not in (TabState.IDLE, TabState.BUSY):
            return []
        tab.state = TabState.CRASHED
        self.touch()
        window = self._windows[tab.window_id]
        return self._close_window(window) if window.prepared else []

    def window_gone(self, window_id: str) -> None:
        """A window is closed with all its tabs."""
        window = self._windows.get(window_id)
        if window is None:
            return
        window.closing = True
        for tab in self._in(window):
            self.tab_gone(tab.context_id)
        if not self._in(window):
            self._windows.pop(window_id, None)

    def forget_free(self) -> None:
        """The browser is gone: what nobody holds is no more, what is held awaits its end."""
        self._surroundings.clear()
        for tab in list(self._tabs.values()):
            if tab.token is not None:
                tab.state, tab.gone = TabState.CLOSING, True
            elif tab.state is not TabState.OPENING:
                self._forget(tab)

    def lost(self) -> list[str]:
        """The browser is gone; return the commands that were opening something."""
        opening = {
            tab.command_id: None
            for tab in self._tabs.values()
            if tab.state is TabState.OPENING and tab.command_id is not None
        }
        opening.update(dict.fromkeys(self._claims.values()))
        self._claims.clear()
        self._tabs.clear()
        self._windows.clear()
        self._surroundings.clear()
        self._last_token.clear()
        return list(opening)

    # Looking

    def room(self) -> Room:
        """Return what there is of windows, for `Stock`."""
        return self._picture.room()

    def window_of(self, context_id: str) -> str | None:
        """Return the window a tab is in; a flow is in none."""
        window = self._windows[self._tabs[context_id].window_id]
        return None if window.flow else window.window_id

    def get(self, context_id: str) -> Tab | None:
        """Return a tab."""
        return self._tabs.get(context_id)

    def _in(self, window: Window) -> list[Tab]:
        return [tab for tab in self._tabs.values() if tab.window_id == window.window_id]

    def _forget(self, tab: Tab) -> None:
        del self._tabs[tab.context_id]
        self._last_token.pop(tab.context_id, None)
        window = self._windows.get(tab.window_id)
        if window is not None and not self._in(window):
            del self._windows[tab.window_id]


def kind_of(body: wire.OpenWindow) -> Kind:
    """Return what a window is asked to be."""
    return Kind(profile=body.profile, options=body.options, resets=body.resets)


def _is_being_prepared(tab: Tab) -> bool:
    return tab.state is TabState.OPENING and tab.command_id is None
