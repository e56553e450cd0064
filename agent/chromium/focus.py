"""What a person types goes where it went before, also when a worker's window opens meanwhile.

Window managers give what is typed to a window that is new, and Chromium has no way to open one that
does not want it. So the X server is asked which window has it, and told to give it back.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress

from Xlib import X
from Xlib.display import Display
from Xlib.error import CatchError, ConnectionClosedError, DisplayError

_ANSWER_S = 0.5
_TAKEN_WITHIN_S = 0.2
"""So soon after a window has opened it has been given what is typed, if it ever is."""
_PACE_S = 0.02


class Focus:
    """Which window of a display gets what is typed. Without a display it does nothing."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._display = env.get("DISPLAY", "")
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
        with suppress(OSError, TimeoutError, DisplayError, ConnectionClosedError):
            async with asyncio.timeout(_ANSWER_S):
                return await asyncio.to_thread(_focus, self._display, give_to)
        return None


def _focus(display: str, give_to: int | None) -> int | None:
    with closing(Display(display)) as server:
        if give_to is not None:
            window = server.create_resource_object("window", give_to)
            # It may have closed meanwhile, which is nobody's fault.
            window.set_input_focus(X.RevertToParent, X.CurrentTime, onerror=CatchError())
        found = server.get_input_focus().focus
        # No window, or whichever lies under the pointer, are numbers; the root is as good as none.
        is_somebody = not isinstance(found, int) and found != server.screen().root
        return int(found.id) if is_somebody else None
