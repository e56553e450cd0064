"""Processes as Linux shows them: who is whose child, who still lives, and an end for a group."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    zombie: bool


def table() -> Iterator[Process]:
    """Yield every process there is."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (process := look(int(entry.name))) is not None:
            yield process


def look(pid: int) -> Process | None:
    """Return what is known of a process; None where there is none."""
    try:
        # The name, in brackets, may hold anything: read what follows the last bracket.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Process(
        pid=pid, parent=int(fields[1]), group=int(fields[2]), zombie=fields[0] in ("Z", "X")
    )


def children(pid: int) -> list[Process]:
    """Return the direct children of a process."""
    return [process for process in table() if process.parent == pid]


def environment(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty where it can't be read."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode(errors="replace").partition("=") for entry in raw.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def command_line(pid: int) -> list[str]:
    """Return the arguments a process was started with; empty where they can't be read."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [entry.decode(errors="replace") for entry in raw.split(b"\0") if entry]


def kill(pid: int) -> None:
    """End a process at once; does nothing if it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_group(group: int) -> None:
    """End a process group at once; does nothing if it has ended. Never our own."""
    if group <= 1 or group == os.getpgrp():
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def anyone_left(groups: set[int], pids: set[int]) -> bool:
    """Tell whether a process of these groups, or one of these, still runs (zombies do not)."""
    return any((p.group in groups or p.pid in pids) and not p.zombie for p in table())


class Watch:
    """Calls back, once, when a process ends. Must be closed."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        """Begin to watch.

        Raises:
            ProcessLookupError: If there is no such process.
        """
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._fd: int | None = os.pidfd_open(pid)
        self._loop.add_reader(self._fd, self._fire)

    def _fire(self) -> None:
        self.close()
        self._ended()

    def close(self) -> None:
        """Watch no more."""
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
