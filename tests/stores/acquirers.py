"""A coordinator that does nothing but take and give back, until it is killed.

`python -m tests.stores.acquirers URL SEED`. It prints a line and ends where it sees two
holders, or one that is robbed.
"""

import asyncio
import random
import sys
from typing import NoReturn

from farm.clock import Clock, steady_clock
from farm.core.model import Assignment, ClientId, ContextId
from farm.core.reservation import Reservation
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisClock, RedisRegistry, RedisRoutes, connect
from farm.stores.redis.records import token_from, token_text
from tests.stores.pool import request

AGENTS = tuple(ClientId(f"agent-{n}") for n in range(5))
TABS = tuple(ContextId(f"T{n}") for n in range(10))
SLOTS = 6
WINDOWS = 12
AT_ONCE = 100
HELD_S = 0.3
LEASE_S = 1.0
CLOCKS_DIFFER_S = 0.05
PRESENCE_S = 3600.0
WINS = "wins"


def registry_at(url: str, name: str | None = None) -> RedisRegistry:
    """A registry; what one with a name has reserved is given back with its lease."""
    return RedisRegistry(
        connect(url, timeout_s=30),
        presence_window_s=PRESENCE_S,
        coordinator=None if name is None else CoordinatorId(name),
        lease_s=LEASE_S,
    )


def routes_of(registry: RedisRegistry, name: str) -> RedisRoutes:
    return RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=LEASE_S)


async def renew(routes: RedisRoutes) -> None:
    while True:
        await routes.renew(())
        await asyncio.sleep(LEASE_S / 4)


async def acquire(registry: RedisRegistry, clock: Clock, dice: random.Random) -> None:
    while True:
        agent, tab = dice.choice(AGENTS), dice.choice(TABS)
        if dice.random() < 0.1:
            await create(registry, clock, agent)
            continue
        if dice.random() < 0.1:
            await commit(registry, clock, tab, f"task-{dice.random()}")
            continue
        outcome: object
        if dice.random() < 0.3:
            near = request(affinity_client_id=agent)
            outcome = await registry.assign_first(near, now=clock(), timeout_s=HELD_S)
        else:
            outcome = await registry.assign(request(), agent, tab, now=clock(), timeout_s=HELD_S)
        if isinstance(outcome, Assignment):
            await hold(registry, clock, outcome, renews=dice.random() < 0.3)
        else:
            await asyncio.sleep(0.01 * dice.random())


async def create(registry: RedisRegistry, clock: Clock, agent: ClientId) -> None:
    one = await registry.reserve_window(agent, identity=None, now=clock())
    if isinstance(one, Reservation):
        await asyncio.sleep(0.01)
        await registry.cancel(one)


async def commit(registry: RedisRegistry, clock: Clock, tab: ContextId, task: str) -> None:
    """Take a slot of whose turn it is, and have it taken over by a tab there."""
    one = await registry.select_and_reserve(request(task), now=clock())
    if one is None:
        return
    await asyncio.sleep(0.01)
    outcome = await registry.commit(
        request(task), one.site.client_id, tab, reservation=one, now=clock(), timeout_s=HELD_S
    )
    if isinstance(outcome, Assignment):
        await hold(registry, clock, outcome, renews=False)
    else:
        await registry.cancel(one)


async def hold(registry: RedisRegistry, clock: Clock, one: Assignment, *, renews: bool) -> None:
    place = (one.client_id, one.context_id, one.token)
    name = f"last {one.client_id} {one.context_id}"
    before = await registry.redis.getset(name, token_text(one.token))
    await check(registry, one, before)
    await registry.redis.incr(WINS)
    expires_at = one.expires_at
    if renews and (renewed := await registry.renew(*place, now=clock(), timeout_s=HELD_S)):
        expires_at = renewed.expires_at
    await asyncio.sleep(0.01)
    await check(registry, one, await registry.redis.get(name))
    if not await registry.release(*place) and clock() < expires_at - CLOCKS_DIFFER_S:
        fail(f"lost before its time: {one}")


async def check(registry: RedisRegistry, one: Assignment, last: str | bytes | None) -> None:
    """Who was given the context later, was so because this one held no more."""
    later = None if last is None else token_from(str(last))
    if later is None or later <= one.token:
        return
    if await registry.holds(one.client_id, one.context_id, one.token):
        fail(f"two holders: {one} and {later}")


def fail(why: str) -> NoReturn:
    print(why, flush=True)
    sys.exit(1)


async def main(url: str, seed: str) -> None:
    name = f"acquirer-{seed}"
    registry = registry_at(url, name)
    await registry.open(store_epoch=1)
    clock = RedisClock(registry.redis, steady=steady_clock)
    await clock.read()
    dice = random.Random(seed)
    async with asyncio.TaskGroup() as group:
        group.create_task(renew(routes_of(registry, name)))
        for _ in range(AT_ONCE):
            group.create_task(acquire(registry, clock, dice))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
