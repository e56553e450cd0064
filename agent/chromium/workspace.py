"""The place on disk of one browser life: temporary files, profile and home of its processes.

Each holds a locked file while its agent lives. The kernel drops the lock when the agent dies,
however it dies, which is how `sweep` tells what was left behind.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "tabfarm-life-"
_NEW = "tabfarm-new-"
_LOCK = "lock"


class Room:
    """Tells what is short on the disk where browsers keep their files; once short, longer so.

    Args:
        folder: A folder on that disk; None is where temporary files go.
        least_bytes: With less free nothing new should begin.
        least_inodes: Likewise; file systems that have no fixed number of them are never short.
    """

    _ENOUGH = 1.25
    """Times the least there has to be before it is no longer short."""

    def __init__(self, folder: Path | None = None, *, least_bytes: int, least_inodes: int) -> None:
        self._folder = folder or Path(tempfile.gettempdir())
        self._least_bytes = least_bytes
        self._least_inodes = least_inodes
        self._is_short = False

    def short(self) -> str | None:
        """Return what is short, in words; None where there is enough, or nobody can tell."""
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return None
        times = self._ENOUGH if self._is_short else 1
        free, inodes = disk.f_bavail * disk.f_frsize, disk.f_favail
        short: str | None = None
        if free < self._least_bytes * times:
            short = f"{free} bytes are free in {self._folder}"
        elif disk.f_files and inodes < self._least_inodes * times:
            short = f"{inodes} inodes are free in {self._folder}"
        self._is_short = short is not None
        return short


class Workspace:
    """One directory, ours until `remove`."""

    def __init__(self, base: Path | None = None) -> None:
        fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=base))
        self._fd = _locked(fresh / _LOCK, os.O_CREAT)
        # Under its final name it has always been locked, so that no sweep can take it for dead.
        self.path = fresh.rename(fresh.with_name(_PREFIX + fresh.name.removeprefix(_NEW)))
        self.home = self.path / "home"
        self.home.mkdir()

    def remove(self) -> None:
        """Delete it with all it holds; does nothing the second time."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def sweep(base: Path | None = None) -> list[Path]:
    """Delete the places whose agents are dead; return them."""
    swept = []
    for path in (base or Path(tempfile.gettempdir())).glob(f"{_PREFIX}*"):
        if (fd := _locked(path / _LOCK)) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(fd)
            swept.append(path)
    return swept


def _locked(path: Path, flags: int = 0) -> int | None:
    """Open and lock a file; None where somebody holds it, or it is not ours to open."""
    try:
        fd = os.open(path, os.O_RDWR | flags, 0o600)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd
    os.close(fd)
    return None
