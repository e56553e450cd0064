"""Where a farm is: its address, and its data directory, which no other may use."""

import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from aiohttp import web

from farm.api.serving import ApiRunner
from farm.config import Settings
from farm.errors import ConflictError
from farm.main.keys import write_private

_SHUTDOWN_S = 2.0


@contextlib.asynccontextmanager
async def listening(app: web.Application, settings: Settings) -> AsyncIterator[str]:
    """Serve for as long as the block lasts; give the address."""
    runner = ApiRunner(app, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port)
        await site.start()
        port = runner.addresses[0][1]
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Hold the data directory: two coordinators on one ledger would each take every job."""
    with (data_dir / "farm.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(f"another farm is running on {data_dir}") from None
        yield


@contextlib.contextmanager
def announced(data_dir: Path, url: str) -> Iterator[None]:
    """Say in the data directory where the farm is, for the command line to find."""
    path = data_dir / "farm.json"
    write_private(path, json.dumps({"url": url, "pid": os.getpid()}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
