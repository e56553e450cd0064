"""A private X server, for windows where nobody has a screen."""

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
from collections.abc import Mapping

_PR_SET_PDEATHSIG = 1
_START_TIMEOUT_S = 15.0


class XvfbUnavailable(Exception):  # noqa: N818 - the text says what would help
    """There is no Xvfb, or it does not start."""


class Xvfb:
    """One X server, ours until `stop`; the kernel ends it when this process ends."""

    def __init__(self, *, width: int = 1600, height: int = 1000) -> None:
        self._screen = f"{width}x{height}x24"
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: int | None = None

    async def start(self, env: Mapping[str, str]) -> str:
        """Start it on a free display; return that, such as `:99`.

        Raises:
            XvfbUnavailable: If it is not installed, or does not start.
        """
        binary = shutil.which("Xvfb", path=env.get("PATH"))
        if binary is None:
            raise XvfbUnavailable("Xvfb is not installed; sudo apt-get install -y xvfb")
        # Kept open: Xvfb writes the number and the line's end apart, and dies of a closed pipe.
        self._pipe, theirs = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(binary, "-displayfd", str(theirs), "-screen", "0", self._screen),
                *("-nolisten", "tcp", "-noreset"),
                env={"PATH": env.get("PATH", os.defpath)},
                pass_fds=[theirs],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                preexec_fn=_end_with_parent,
                start_new_session=True,  # Ctrl-C is ours to handle, and windows go before screens
            )
        finally:
            os.close(theirs)
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                return ":" + await self._number(self._pipe)
        except TimeoutError as error:
            await self.stop()
            raise XvfbUnavailable("Xvfb does not say on which display it is") from error
        except BaseException:
            await self.stop()
            raise

    async def _number(self, pipe: int) -> str:
        os.set_blocking(pipe, False)
        said = b""
        loop = asyncio.get_running_loop()
        while not said.endswith(b"\n"):
            readable = asyncio.Event()
            loop.add_reader(pipe, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(pipe)
            chunk = os.read(pipe, 64)
            if not chunk:
                raise XvfbUnavailable("Xvfb ended before it was up")
            said += chunk
        return said.decode().strip()

    async def stop(self) -> None:
        """End it; does nothing the second time."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    """Ask the kernel, in the child before it becomes Xvfb, to end it with the agent."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
