"""What people do on an X display, seen beside the browser's own input, which is kept out of pages.

A thread of its own listens: requests to an X server wait for its answer. It takes nothing away from
anybody but one key.
"""

import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import structlog
from Xlib import XK, X
from Xlib.display import Display
from Xlib.error import CatchError, ConnectionClosedError, DisplayError, XError
from Xlib.ext import xinput
from Xlib.protocol.rq import Event
from Xlib.xobject.drawable import Window

_log = structlog.get_logger(__name__)
_MODIFIERS = {"Shift": X.ShiftMask, "Control": X.ControlMask, "Alt": X.Mod1Mask}
_LOCKS = (0, X.LockMask, X.Mod2Mask, X.LockMask | X.Mod2Mask)
"""Caps lock and num lock make another key of it for X."""
_RAW_HEAD, _RAW_DETAIL = 10, slice(6, 10)
_FIRST_BUTTON = 1
_END_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A press of the mouse's first button, or of the key, and in which window."""

    key: bool
    x: int
    """Where the pointer is, from the window's left edge."""
    y: int
    """And from its top."""
    left: int
    """The window itself, on the screen."""
    top: int
    width: int
    height: int
    title: str


class ScreenUnavailable(Exception):  # noqa: N818 - the text says what would help
    """The display can't be watched."""


class ScreenWatch:
    """Watches one display from `start` to `stop`; `tell` is called on the watching thread.

    Args:
        display: Such as `:0`.
        key: Such as `Control+Alt+Home`: is taken from everybody else. Empty takes none.
        tell: Takes what is seen.

    Raises:
        ScreenUnavailable: If there is no such display, or no such key.
    """

    def __init__(self, display: str, *, key: str, tell: Callable[[Seen], None]) -> None:
        self._tell = tell
        try:
            self._display = Display(display)
        except (DisplayError, ConnectionClosedError, OSError) as error:
            raise ScreenUnavailable(f"the display {display} can't be watched: {error}") from error
        self._root: Window = self._display.screen().root
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._watch, name="screen", daemon=True)
        if key:
            self._grab(key)
        self._listen_to_buttons()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; the key is everybody's again. Waits for the thread, for two seconds at most."""
        os.write(self._woken, b".")
        self._thread.join(_END_S)
        os.close(self._wake)
        os.close(self._woken)

    def _grab(self, key: str) -> None:
        *names, last = key.split("+")
        symbol = XK.string_to_keysym(last)
        code = self._display.keysym_to_keycode(symbol) if symbol else 0
        unknown = [name for name in names if name not in _MODIFIERS]
        if unknown or not code:
            known = "+".join(_MODIFIERS)
            raise ScreenUnavailable(f"{key} is no key here; {known} and an X key name make one")
        mask = sum(_MODIFIERS[name] for name in names)
        taken = CatchError()
        for locks in _LOCKS:
            self._root.grab_key(
                code, mask | locks, False, X.GrabModeAsync, X.GrabModeAsync, onerror=taken
            )
        self._display.sync()
        if taken.get_error() is not None:
            _log.warning("screen.key_taken", key=key, reason="another program has it")

    def _listen_to_buttons(self) -> None:
        # Raw events come to all who ask, whoever else has the pointer.
        if not self._display.has_extension(xinput.extname):
            raise ScreenUnavailable("the X server has no XInput extension")
        self._display.xinput_query_version()
        wanted = [(xinput.AllMasterDevices, xinput.RawButtonPressMask)]
        self._root.xinput_select_events(wanted)  # type: ignore[attr-defined]  # added by extension
        self._display.flush()

    def _watch(self) -> None:
        with contextlib.suppress(ConnectionClosedError, OSError):
            while True:
                while self._display.pending_events():
                    self._take(self._display.next_event())
                ready, _, _ = select.select([self._display.fileno(), self._wake], [], [])
                if self._wake in ready:
                    self._display.close()
                    return
        _log.warning("screen.lost", reason="the X server has ended")

    def _take(self, event: Event) -> None:
        key = event.type == X.KeyPress
        if not key and not _is_first_button(event):
            return
        with contextlib.suppress(XError):  # a window that is gone by now
            window = self._window(focus=key)
            if window is not None:
                self._tell(self._seen(window, key=key))

    def _seen(self, window: Window, *, key: bool) -> Seen:
        size = window.get_geometry()
        place = self._root.translate_coords(window, 0, 0)  # type: ignore[arg-type]  # a window is meant
        pointer = self._root.query_pointer()
        name = window.get_full_text_property(self._display.get_atom("_NET_WM_NAME"))
        return Seen(
            key=key,
            x=pointer.root_x - place.x,
            y=pointer.root_y - place.y,
            left=place.x,
            top=place.y,
            width=size.width,
            height=size.height,
            title=str(name or window.get_wm_name() or ""),
        )

    def _window(self, *, focus: bool) -> Window | None:
        """Return the program's window that has the focus, if that is asked for, or the pointer."""
        if focus:
            return self._focused() or self._pointed_at()
        return self._pointed_at()

    def _focused(self) -> Window | None:
        window: Any = self._display.get_input_focus().focus
        while window and not isinstance(window, int) and window.id != self._root.id:
            if window.get_wm_class() is not None:
                return cast(Window, window)
            window = window.query_tree().parent
        return None

    def _pointed_at(self) -> Window | None:
        window: Any = self._root.query_pointer().child
        while window:
            if window.get_wm_class() is not None:
                return cast(Window, window)
            window = window.query_pointer().child
        return None


def _is_first_button(event: Event) -> bool:
    if getattr(event, "evtype", None) != xinput.RawButtonPress or len(event.data) < _RAW_HEAD:
        return False
    return int.from_bytes(event.data[_RAW_DETAIL], "little") == _FIRST_BUTTON


@contextmanager
def watching(display: str, *, key: str, tell: Callable[[Seen], None]) -> Iterator[None]:
    """Watch a display for as long as the block lasts; where that can't be, say so and go on."""
    try:
        watch = ScreenWatch(display, key=key, tell=tell)
    except ScreenUnavailable as error:
        _log.warning("screen.unwatched", reason=str(error))
        yield
        return
    watch.start()
    try:
        yield
    finally:
        watch.stop()
