"""What a person does in the live view, done to the page, and what they left pressed, let go."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, assert_never

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from agent.chromium.shielding import within
from farm.protocol.live import Act, Drop, Key, Mouse, Text, Touch, TouchPoint, Wheel

_BUTTONS = {"none": 0, "left": 1, "right": 2, "middle": 4, "back": 8, "forward": 16}
_MOUSE = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}
_TOUCH = {
    "start": "touchStart",
    "move": "touchMove",
    "end": "touchEnd",
    "cancel": "touchCancel",
}
_NO_TEXT = 0b0111
"""With Alt, Control or Meta a key writes nothing."""
_LET_GO_S = 1.0


class Hands:
    """The mouse, keyboard and fingers of whoever is in control, on one page."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._width = self._height = 0.0
        self._buttons = 0
        self._at = (0.0, 0.0)
        self._keys: dict[str, dict[str, Any]] = {}
        self._touching = False
        self._letting_go = asyncio.Lock()

    def see(self, width: float, height: float) -> None:
        """The page is so large, in its own pixels, as the person sees it now."""
        self._width, self._height = width, height

    async def do(self, act: Act, file: Path | None = None) -> None:
        """Do it to the page; `file` is what is dropped.

        Raises:
            PlaywrightError: If the page is gone, or will not have it.
        """
        match act:
            case Mouse():
                await self._mouse(act)
            case Wheel():
                await self._wheel(act)
            case Key():
                await self._key(act)
            case Text(text=text):
                await self._session.send("Input.insertText", {"text": text})
            case Touch():
                await self._touch(act)
            case Drop():
                if file is not None:
                    await self._drop(act, file)
            case _:
                assert_never(act)

    async def let_go(self) -> None:
        """Release every button, key and finger; when it returns they are. Never fails."""
        async with self._letting_go:
            with contextlib.suppress(PlaywrightError):
                await within(_LET_GO_S, self._let_go())

    async def _let_go(self) -> None:
        keys, self._keys = self._keys, {}
        x, y = self._at
        for name, bit in _BUTTONS.items():
            if self._buttons & bit:
                self._buttons &= ~bit
                released = {"x": x, "y": y, "button": name, "clickCount": 1}
                await self._send_mouse("mouseReleased", released)
        for key in keys.values():
            await self._session.send("Input.dispatchKeyEvent", {**key, "type": "keyUp"})
        if self._touching:
            self._touching = False
            cancel = {"type": "touchCancel", "touchPoints": []}
            await self._session.send("Input.dispatchTouchEvent", cancel)

    async def _mouse(self, act: Mouse) -> None:
        bit = _BUTTONS[act.button]
        match act.act:
            case "down":
                self._buttons |= bit
            case "up":
                self._buttons &= ~bit
            case "move":
                pass
        x, y = self._place(act)
        how = {"x": x, "y": y, "button": act.button, "modifiers": act.modifiers}
        if act.act != "move":
            how["clickCount"] = act.clicks
        await self._send_mouse(_MOUSE[act.act], how)

    async def _wheel(self, act: Wheel) -> None:
        x, y = self._place(act)
        turn = {"x": x, "y": y, "deltaX": act.dx, "deltaY": act.dy, "modifiers": act.modifiers}
        await self._send_mouse("mouseWheel", turn)

    async def _send_mouse(self, kind: str, how: dict[str, Any]) -> None:
        order = {"type": kind, "buttons": self._buttons, **how}
        await self._session.send("Input.dispatchMouseEvent", order)

    async def _key(self, act: Key) -> None:
        order: dict[str, Any] = {
            "key": act.key,
            "code": act.code,
            "windowsVirtualKeyCode": act.key_code,
            "location": act.location,
            "modifiers": act.modifiers,
            "isKeypad": act.location == 3,
        }
        name = act.code or act.key
        if act.act == "up":
            self._keys.pop(name, None)
            await self._session.send("Input.dispatchKeyEvent", {**order, "type": "keyUp"})
            return
        self._keys[name] = order
        text = _text_of(act)
        kind = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        await self._session.send(
            "Input.dispatchKeyEvent", {**order, **kind, "autoRepeat": act.repeat}
        )

    async def _touch(self, act: Touch) -> None:
        self._touching = bool(act.points) and act.act in ("start", "move")
        points = [{**self._point(point), "id": point.id} for point in act.points]
        order = {"type": _TOUCH[act.act], "touchPoints": points, "modifiers": act.modifiers}
        if act.act == "cancel":
            order["touchPoints"] = []
        await self._session.send("Input.dispatchTouchEvent", order)

    def _point(self, point: TouchPoint) -> dict[str, Any]:
        x, y = self._place(point)
        return {"x": x, "y": y}

    async def _drop(self, act: Drop, file: Path) -> None:
        x, y = self._place(act)
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            order = {"type": kind, "x": x, "y": y, "data": data}
            await self._session.send("Input.dispatchDragEvent", order)

    def _place(self, act: Mouse | Wheel | TouchPoint | Drop) -> tuple[float, float]:
        # The far edge is no longer on the page.
        x = min(act.x * self._width, max(self._width - 1, 0))
        y = min(act.y * self._height, max(self._height - 1, 0))
        self._at = (x, y)
        return x, y


def _text_of(act: Key) -> str:
    """Return what a key writes; empty where it writes nothing."""
    if act.modifiers & _NO_TEXT:
        return ""
    if act.key == "Enter":
        return "\r"
    return act.key if len(act.key) == 1 else ""
