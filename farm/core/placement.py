"""Where in a browser a task may work: the wish of a request, as a value.

A placement never grants creation; that is `Request.auto_provision` alone.
"""

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """Which windows and tabs will do."""

    REUSE_ONLY = "reuse_only"
    """An idle tab; nothing is ever created."""
    PREFER_REUSE = "prefer_reuse"
    """An idle tab, else a new tab in the window of the identity named, else a new window."""
    NEW_TAB = "new_tab"
    """A new tab in the window of the identity named."""
    NEW_WINDOW = "new_window"
    """A new window."""
    DEDICATED_WINDOW = "dedicated_window"
    """A window, there already or new, with nobody else's tab in it while it is held."""
    NAMED_WINDOW = "named_window"
    """The window named and no other."""
    IDENTITY = "identity"
    """The window that holds the identity; it is opened where there is none."""


MUST_CREATE = frozenset({Mode.NEW_TAB, Mode.NEW_WINDOW})
"""Modes for which no tab that is there already will do."""
ANYWHERE = frozenset({Mode.REUSE_ONLY, Mode.PREFER_REUSE})
"""Modes that mean something where there are no windows."""


class Fill(StrEnum):
    """Which agent is preferred where several would do."""

    SPREAD = "spread"
    """The emptiest."""
    PACK = "pack"
    """The fullest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPlacement:
    """What a request asks of windows and tabs.

    Args:
        mode: Which windows and tabs will do.
        window_id: The window of `NAMED_WINDOW`.
        identity: The identity to work in; None is an anonymous one.
        exclusive: No other task works in the identity's window at the same time.
        fill: Which agent is preferred.
        max_windows: Open a window only where fewer than so many are; never more than negotiated.
        max_tabs_per_window: The same for the tabs of a window.

    Raises:
        ValueError: If a mode lacks what it needs, or a number is below 1.
    """

    mode: Mode = Mode.PREFER_REUSE
    window_id: str | None = None
    identity: str | None = None
    exclusive: bool = False
    fill: Fill = Fill.SPREAD
    max_windows: int | None = None
    max_tabs_per_window: int | None = None

    def __post_init__(self) -> None:
        if (self.mode is Mode.NAMED_WINDOW) != (self.window_id is not None):
            raise ValueError("window_id goes with the mode named_window, and only with it")
        if self.mode is Mode.IDENTITY and self.identity is None:
            raise ValueError("the mode identity needs an identity")
        if self.identity == "":
            raise ValueError("an identity has a name")
        if self.exclusive and self.identity is None:
            raise ValueError("exclusive goes with an identity")
        for name in ("max_windows", "max_tabs_per_window"):
            cap = getattr(self, name)
            if cap is not None and cap < 1:
                raise ValueError(f"{name} is at least 1")

    @property
    def dedicated(self) -> bool:
        """Tell whether nobody else may have a tab in the window while it is held."""
        return self.mode is Mode.DEDICATED_WINDOW or self.exclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a manager has to create with."""

    app_node: bool = True
    windows: bool = True
    """There is a registry of browser windows."""
    flows: bool = True
    """There is a registry that reserves flows."""
    not_on: frozenset[str] = frozenset()
    """Clients on which another coordinator creates."""


def identity_in(namespace: str, name: str) -> str:
    """Name an identity across namespaces: the same name elsewhere is another identity (P16)."""
    return f"{namespace}/{name}"
