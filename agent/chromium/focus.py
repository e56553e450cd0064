"""What a person types goes where it went before, also when a worker's window opens meanwhile.

Window managers give what is typed to a window that is new, and Chromium has no way to open one that
does not want it. So the X server is asked which window has it, and told to give it back.
"""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

_ANSWER_S = 0.5
_TAKEN_WITHIN_S = 0.2
"""So soon after a window has opened it has been given what is typed, if it ever is."""
_PACE_S = 0.02
_NOBODY = (0, 1)
"""No window, or whichever lies under the pointer. The root window is nobody, too."""
_TO_PARENT = 2


class _Reply(ctypes.Structure):
    _fields_ = (
        ("response_type", ctypes.c_uint8),
        ("revert_to", ctypes.c_uint8),
        ("sequence", ctypes.c_uint16),
        ("length", ctypes.c_uint32),
        ("focus", ctypes.c_uint32),
    )


class _Cookie(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


class _Screens(ctypes.Structure):
    _fields_ = (
        ("root", ctypes.POINTER(ctypes.c_uint32)),
        ("rem", ctypes.c_int),
        ("index", ctypes.c_int),
    )


def _library() -> ctypes.CDLL:
    """Return XCB, which Chromium needs too. Its errors are answers; Xlib's end the process."""
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    xcb.xcb_get_input_focus.restype = _Cookie
    xcb.xcb_get_input_focus.argtypes = (ctypes.c_void_p,)
    xcb.xcb_get_input_focus_reply.restype = ctypes.POINTER(_Reply)
    xcb.xcb_get_input_focus_reply.argtypes = (ctypes.c_void_p, _Cookie, ctypes.c_void_p)
    xcb.xcb_set_input_focus.restype = _Cookie
    xcb.xcb_set_input_focus.argtypes = (
        *(ctypes.c_void_p, ctypes.c_uint8),
        *(ctypes.c_uint32, ctypes.c_uint32),
    )
    xcb.xcb_get_setup.restype = ctypes.c_void_p
    xcb.xcb_setup_roots_iterator.restype = _Screens
    xcb.xcb_setup_roots_iterator.argtypes = (ctypes.c_void_p,)
    for name in ("xcb_get_setup", "xcb_disconnect", "xcb_connection_has_error"):
        getattr(xcb, name).argtypes = (ctypes.c_void_p,)
    return xcb


class Focus:
    """Which window of a display gets what is typed. Without a display it does nothing."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._display = env.get("DISPLAY", "").encode()
        self._openings = 0
        self._before: int | None = None

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Give it back if a window that opens meanwhile takes it; never fails because of it."""
        if self._openings == 0:
            self._before = await self._ask(None)
        self._openings += 1
        try:
            yield
        finally:
            self._openings -= 1
            if self._before is not None:
                await self._give_back(self._before)

    async def _give_back(self, before: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_TAKEN_WITHIN_S):
                while await self._ask(None) == before:  # noqa: ASYNC110 - X tells its clients only
                    await asyncio.sleep(_PACE_S)
                await self._ask(before)

    async def _ask(self, give_to: int | None) -> int | None:
        """Let a window have it, if one is named; say which has it, and None for nobody."""
        if not self._display:
            return None
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                return await asyncio.to_thread(_focus, self._display, give_to)
        return None


def _focus(display: bytes, give_to: int | None) -> int | None:
    xcb = _library()
    connection = xcb.xcb_connect(display, None)
    try:
        if xcb.xcb_connection_has_error(connection):
            return None
        if give_to is not None:
            xcb.xcb_set_input_focus(connection, _TO_PARENT, give_to, 0)
        cookie = xcb.xcb_get_input_focus(connection)
        reply = xcb.xcb_get_input_focus_reply(connection, cookie, None)
        if not reply:
            return None
        found = int(reply.contents.focus)
        ctypes.CDLL(None).free(reply)
        root = xcb.xcb_setup_roots_iterator(xcb.xcb_get_setup(connection)).root
        return None if found in (*_NOBODY, root.contents.value) else found
    finally:
        xcb.xcb_disconnect(connection)
