"""A coordinator that has reserved of agent `a` what there is, and committed one slot.

`python -m tests.stores.reserver URL SHARD NAME LEASE_S`. It says `reserved`, and renews its lease.
For each line of stdin it says what has become of a slot that it tries to commit, and whether it
gets another one.
"""

import asyncio
import sys

from farm.core.model import ContextId
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisRegistry, RedisRoutes, connect
from tests.stores.pool import LINK, T0, TIMEOUT_S, WINDOW_S, A, request, tab, window

COMMITTED, TRIED = "committed", "tried"


async def reserver(url: str, shard: str, name: str, lease_s: float) -> None:
    registry = RedisRegistry(
        connect(url),
        presence_window_s=WINDOW_S,
        shard=shard,
        coordinator=CoordinatorId(name),
        lease_s=lease_s,
    )
    await registry.open(store_epoch=1)
    routes = RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)
    await routes.claim(A, LINK)
    async with asyncio.TaskGroup() as group:
        group.create_task(_renew(routes))
        await window(registry, identity="shop")
        await tab(registry, "W3")
        kept, open_ = await _slot(registry), await _slot(registry)
        assert isinstance(kept, Reservation)
        assert isinstance(open_, Reservation)
        outcome = await _commit(registry, COMMITTED, "T1", kept)
        assert outcome == "assigned", outcome
        print("reserved", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(await _commit(registry, TRIED, "T2", open_), flush=True)
            print(type(await _slot(registry)).__name__, flush=True)


async def _slot(registry: RedisRegistry) -> Reservation | Denial:
    return await registry.reserve_worker(request(), A, now=T0)


async def _commit(registry: RedisRegistry, task: str, context: str, one: Reservation) -> str:
    found = await registry.commit(
        request(task), A, ContextId(context), reservation=one, now=T0, timeout_s=TIMEOUT_S
    )
    return found.value if isinstance(found, Denial) else "assigned"


async def _renew(routes: RedisRoutes) -> None:
    while True:
        await routes.renew(())
        await asyncio.sleep(routes.lease_s / 4)


if __name__ == "__main__":
    at, of, named, lease = sys.argv[1:]
    asyncio.run(reserver(at, of, named, float(lease)))
