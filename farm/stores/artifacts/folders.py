"""The folders of artifacts in a directory, looked at and emptied; to be called in threads.

What is not there is none, and no error: another coordinator may have removed it meanwhile.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farm.errors import StoreUnavailableError


def remove(folder: Path) -> None:
    """Remove a folder with its files. Raises StoreUnavailableError if some may be left."""
    with _translated(folder):
        for file, _ in _files(folder):
            file.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            folder.rmdir()


def discard(file: Path) -> None:
    """Remove a file. Raises StoreUnavailableError."""
    with _translated(file):
        file.unlink(missing_ok=True)


def remove_old(folder: Path, before: float) -> int:
    """Remove the files last written before a moment, in seconds since the Unix epoch."""
    removed = 0
    with _translated(folder):
        for file, state in _files(folder):
            if state.st_mtime < before:
                file.unlink(missing_ok=True)
                removed += 1
    return removed


def size(folder: Path) -> int:
    """Return how many bytes the files have."""
    total = 0
    with _translated(folder):
        for _, state in _files(folder):
            total += state.st_size
    return total


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        found = list(folder.iterdir())
    except FileNotFoundError:
        return
    for file in found:
        with suppress(FileNotFoundError):
            yield file, file.lstat()


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(f"{folder.name} can't be seen to: {error}") from error
