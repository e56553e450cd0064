"""Half of a crowd that asks for the same contexts, round after round, until it is killed.

`python -m tests.stores.crowd URL ASKERS`. For each line of stdin, a moment, it asks for a context
as often as there are askers, all at once, and prints what was won as one line of JSON; the next
line lets it release all that, and it prints how many were released.
"""

import asyncio
import json
import sys

from farm.core.model import Instant
from farm.manager.handle import ContextHandle
from farm.manager.manager import WorkerContextManager
from farm.stores.redis.records import token_text
from tests.stores.acquirers import registry_at
from tests.stores.pool import NS

TIMEOUT_MS = 1000


async def ask(manager: WorkerContextManager, askers: int) -> list[ContextHandle]:
    found = await asyncio.gather(*(manager.acquire(NS, f"task-{n}") for n in range(askers)))
    return [handle for handle in found if handle is not None]


def place(handle: ContextHandle) -> tuple[str, str, str]:
    held = handle.assignment
    return held.client_id, held.context_id, token_text(held.token)


async def main(url: str, askers: str) -> None:
    registry = registry_at(url)
    await registry.open(store_epoch=1)
    now = Instant(0.0)
    manager = WorkerContextManager(
        context_registry=registry,
        connection_registry=registry,
        task_timeout_ms=TIMEOUT_MS,
        clock=lambda: now,
    )
    while line := await asyncio.to_thread(sys.stdin.readline):
        now = Instant(float(line))
        won = await ask(manager, int(askers))
        print(json.dumps([place(handle) for handle in won]), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        released = [await handle.release() for handle in won]
        print(sum(released), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
