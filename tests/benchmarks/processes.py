"""What a tree of processes has used: CPU of the living and of those they have buried, and PSS."""

import contextlib
from pathlib import Path

import psutil


def cpu_s(root: int) -> float:
    """Return user and system seconds of a process and all below it, children that ended included.

    A child's time passes to its parent when it is waited for, so the sum only grows.
    """
    total = 0.0
    for process in _tree(root):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def pss_mb(root: int) -> float:
    """Return the proportional set size of a process and all below it, in MB."""
    total = 0
    for process in _tree(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def _tree(root: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(root)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
