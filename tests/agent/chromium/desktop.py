"""A screen with a window manager, and a person at it."""

import asyncio
import os
import shutil
from collections.abc import Callable
from typing import Self

import pytest

from agent.xvfb import Xvfb, XvfbUnavailable
from tests.patience import PATIENCE_S


class Desktop:
    """An X server of the test's own, with jwm; what a person does comes as real X events."""

    def __init__(self) -> None:
        self._screen = Xvfb(width=1600, height=1000)
        self._manager: asyncio.subprocess.Process | None = None
        self.env: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        missing = [name for name in ("xdotool", "jwm") if shutil.which(name) is None]
        display = ""
        try:
            display = await self._screen.start(os.environ)
        except XvfbUnavailable as error:
            missing.append(str(error))
        if missing:
            message = f"not here: {', '.join(missing)}; see scripts/system.sh"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
        self.env = {**os.environ, "DISPLAY": display}
        self._manager = await asyncio.create_subprocess_exec(
            "jwm",
            env=self.env,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await self.until(lambda: self.xdotool("get_desktop"), lambda said: said.strip() == "0")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._manager is not None:
            self._manager.kill()
            await self._manager.wait()
        await self._screen.stop()

    async def xdotool(self, *command: str) -> str:
        """Do one thing as a person would; return what it prints."""
        process = await asyncio.create_subprocess_exec(
            "xdotool",
            *command,
            env=self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        said, _ = await process.communicate()
        return said.decode()

    async def press(self, keys: str) -> None:
        await self.xdotool("key", "--clearmodifiers", keys)

    async def click(self, x: float, y: float) -> None:
        await self.xdotool("mousemove", str(round(x)), str(round(y)), "click", "1")

    async def focused(self) -> str:
        """The window that gets what is typed."""
        return (await self.xdotool("getwindowfocus")).strip()

    @staticmethod
    async def until(ask: Callable[[], object], good: Callable[[str], object]) -> str:
        """Ask until the answer is good; return that."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                said = await ask()  # type: ignore[misc]
                if good(said):
                    return str(said)
                await asyncio.sleep(0.05)
