"""Whether coordinators that share a ledger share what goes with it, too, and know of changes."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from farm.api.auth import TokenBook
from farm.core.model import Namespace
from farm.errors import ConflictError
from farm.main.jobs import Jobs
from farm.manager.queues import DeclaredQueues
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


def in_step(jobs: Jobs, queues: DeclaredQueues, tokens: TokenBook) -> Callable[[Namespace], None]:
    """Have what each coordinator keeps of the ledger known anew when another has changed it.

    Returns what is to be called with a namespace whose placement or task queues have changed here.
    """

    def look_anew(namespace: Namespace) -> None:
        jobs.manager.placement_changed(namespace)
        queues.changed(namespace)
        jobs.dispatcher.look_anew()

    neighbours = jobs.neighbours
    if neighbours is None:
        return look_anew
    neighbours.changed, neighbours.revoked = look_anew, tokens.forget
    tokens.tell_revoked = neighbours.tell_revoked

    def changed(namespace: Namespace) -> None:
        look_anew(namespace)
        neighbours.tell_changed(namespace)

    return changed


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
