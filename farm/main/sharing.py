"""Whether coordinators that share a ledger share what goes with it, too."""

import asyncio
import contextlib
import os
import secrets
from pathlib import Path

from farm.errors import ConflictError
from farm.stores.ports.sharing import SharedLedger

_MARK = ".ledger"


async def same_files(directory: Path, shared: SharedLedger) -> None:
    """Make sure that files are kept where the other coordinators keep theirs.

    The first one leaves a number there and in the ledger.

    Raises:
        ConflictError: If this is another directory.
        OSError: If it can't be read or written.
    """
    number = await asyncio.to_thread(_number_in, directory)
    if await shared.agreed_on("files", number) != number:
        raise ConflictError(
            f"{directory} is not where the other coordinators of this ledger keep files: set"
            " FARM_ARTIFACTS__DIR to the directory that all share"
        )


def _number_in(directory: Path) -> int:
    """Return the directory's number, which whoever comes first leaves there as a whole."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, own = directory / _MARK, directory / f"{_MARK}.{secrets.token_hex(8)}"
    own.write_text(f"{secrets.randbits(62)}")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(own, path)
    finally:
        own.unlink()
    return int(path.read_text())
