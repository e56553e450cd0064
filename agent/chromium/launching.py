"""One browser launch at a time on a host, whoever's agent it is.

A launch keeps two cores busy for half a second; a dozen at once, as after a host's start, all run
into their time limits. The lock is a file in the temporary directory that agents share.
"""

import asyncio
import contextlib
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

_NAME = "tabfarm-launch.lock"
_LOOK_S = 0.05
WAIT_S = 30.0
"""For so long one waits for its turn, and then launches all the same."""


@contextlib.asynccontextmanager
async def turn(*, base: Path | None = None, wait_s: float = WAIT_S) -> AsyncIterator[bool]:
    """Wait for a turn to launch, and have it until the end; tell whether it is ours alone.

    The kernel gives up the turn of a process that dies.
    """
    fd = _opened((base or Path(tempfile.gettempdir())) / _NAME)
    if fd is None:
        yield False  # the file is another user's: that user's agents are not waited for
        return
    try:
        yield await _locked(fd, wait_s)
    finally:
        os.close(fd)


def _opened(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return None


async def _locked(fd: int, wait_s: float) -> bool:
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_LOOK_S)  # a lock that is waited for in a thread can't be given up
