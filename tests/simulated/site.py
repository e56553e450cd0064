"""`python -m tests.simulated.site FILE [HOST]`: a site whose log says what has been done to it.

It is a process of its own, which nobody kills: whether anything was done twice is seen from
outside. `POST /effects` with job, step and attempt is one line of the log, on the disk before it is
answered. The first line of stdout is where it is.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

Key = tuple[str, int]
"""A job and the index of its step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One thing that was done."""

    job: str
    step: int
    attempt: str

    @property
    def key(self) -> Key:
        return self.job, self.step


def read(log: Path) -> list[Done]:
    """Everything that was done, in order."""
    return [Done(**json.loads(line)) for line in log.read_text().splitlines()]


def twice(done: list[Done]) -> dict[Key, int]:
    """What was done more than once, and how often."""
    return {key: times for key, times in Counter(one.key for one in done).items() if times > 1}


@asynccontextmanager
async def opened(log: Path, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Serve the site in this process; give its URL."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def effects(request: web.Request) -> web.Response:
        said = await request.json()
        done = Done(job=said["job"], step=said["step"], attempt=said["attempt"])
        line = {"job": done.job, "step": done.step, "attempt": done.attempt}
        os.write(file, f"{json.dumps(line)}\n".encode())
        return web.Response()

    app = web.Application()
    app.router.add_post("/effects", effects)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, host, 0)
    await site.start()
    try:
        address = runner.addresses[0]
        yield f"http://{address[0]}:{address[1]}"
    finally:
        await runner.cleanup()
        os.close(file)


async def _serve(log: Path, *host: str) -> None:
    async with opened(log, *host) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), *sys.argv[2:]))
