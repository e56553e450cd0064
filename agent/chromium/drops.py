"""Files that people drop into a page: kept for as long as the tab, and not without bounds."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from agent.chromium.tabs import Tab
from farm.protocol.live import MAX_DROP_BYTES

_MOST_FILES = 20
_NAME_BYTES = 200


class Drops:
    """The files dropped into one tab by those who watch it on one channel."""

    def __init__(self, tab: Tab, place: Path) -> None:
        """`place` is a directory that the browser can read."""
        self._tab = tab
        self._place = place
        self._kept = 0

    async def keep(self, name: str, content: bytes | memoryview) -> Path:
        """Write a file under a name that is safe, in a directory of its own; return its path.

        Raises:
            ValueError: If it is too large, or there are too many.
        """
        if len(content) > MAX_DROP_BYTES:
            raise ValueError(f"a file has at most {MAX_DROP_BYTES} bytes")
        if self._kept >= _MOST_FILES:
            raise ValueError(f"at most {_MOST_FILES} files are dropped into a tab")
        self._kept += 1
        # The page may read it as long as it is there, and not only now.
        directory = Path(tempfile.mkdtemp(prefix="drop-", dir=self._place))
        self._tab.ended.add_done_callback(lambda _: shutil.rmtree(directory, ignore_errors=True))
        path = directory / safe_name(name)
        await asyncio.to_thread(path.write_bytes, content)
        return path


def safe_name(name: str) -> str:
    """Return the last part of a name, without what means something to a file system."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    printable = "".join(char for char in last if char.isprintable()).lstrip(".")
    return printable.encode()[:_NAME_BYTES].decode(errors="ignore") or "file"
