"""Many who ask at once, in several processes, some of which die in the middle."""

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from farm.clock import Clock, steady_clock
from farm.core.model import Assignment, Capacity, Client
from farm.stores.redis import RedisClock, RedisRegistry
from tests.patience import PATIENCE_S
from tests.stores import redis_server
from tests.stores.acquirers import (
    AGENTS,
    SLOTS,
    TABS,
    WINDOWS,
    WINS,
    registry_at,
    renew,
    routes_of,
)
from tests.stores.pool import T0, WINDOW_S, hello, registered, reported, request

ROOT = Path(__file__).parents[2]
KILLS = 5


async def test_of_many_who_ask_two_coordinators_as_many_win_as_there_is_room(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> None:
    one = await new_redis_registry(1)
    other = RedisRegistry(one.redis, presence_window_s=WINDOW_S, shard=one.shard)
    await other.open(store_epoch=1)
    client = await registered(one, hello(capacity=Capacity(max_concurrency=12)))
    dice = random.Random(1)
    for number in range(1, 6):
        await reported(one, *TABS, *(f"T1{n}" for n in range(5)), client=client, number=number)
        won: list[Assignment] = []

        async def ask(registry: RedisRegistry, won: list[Assignment]) -> None:
            contexts = list((await registry.snapshot(now=T0)).clients[0].contexts)
            for tab in dice.sample(contexts, len(contexts)):
                found = await registry.assign(request(), client.client_id, tab, now=T0, timeout_s=9)
                if isinstance(found, Assignment):
                    won.append(found)
                    return

        async with asyncio.TaskGroup() as group:
            for n in range(60):
                group.create_task(ask((one, other)[n % 2], won))
        assert len(won) == 12
        assert len({a.context_id for a in won}) == len({a.token for a in won}) == 12
        for a in won:
            assert await other.release(a.client_id, a.context_id, a.token)


@pytest.mark.slow
async def test_two_coordinators_one_always_dying_give_nothing_to_two_and_lose_nothing(
    redis_url: str, tmp_path: Path
) -> None:
    with redis_server.running(tmp_path) as url:
        registry = registry_at(url)
        await registry.open(store_epoch=1)
        clock = RedisClock(registry.redis, steady=steady_clock)
        await clock.read()
        agents = [await _agent(registry, name, clock) for name in AGENTS]
        async with asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as group:
            judging = group.create_task(renew(routes_of(registry, "judge")))
            await _kill_again_and_again(registry, agents, clock, url, tmp_path)
            while not await _is_free(registry, clock):
                pass
            judging.cancel()
        await registry.redis.aclose()


async def _agent(registry: RedisRegistry, name: str, clock: Clock) -> Client:
    capacity = Capacity(max_concurrency=SLOTS, max_windows=WINDOWS)
    return await registered(registry, hello(name, capacity=capacity), epoch=name, now=clock())


async def _kill_again_and_again(
    registry: RedisRegistry, agents: list[Client], clock: Clock, url: str, folder: Path
) -> None:
    dice = random.Random(1)
    seeds, numbers = count(), count(1)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_coordinator(url, next(seeds), folder)) for _ in range(2)]
        for _ in range(KILLS):
            until = int(await registry.redis.get(WINS) or 0) + dice.randint(20, 300)
            while int(await registry.redis.get(WINS) or 0) < until:
                await _live(registry, agents, clock, next(numbers))
                assert all(one.poll() is None for one in running), _said(folder)
            victim = running.pop(dice.randrange(2))
            victim.kill()
            victim.wait()
            running.append(stack.enter_context(_coordinator(url, next(seeds), folder)))
    assert not _said(folder)


async def _live(registry: RedisRegistry, agents: list[Client], clock: Clock, number: int) -> None:
    """What agents and the sweeper do, and a look at what may never be seen."""
    for agent in agents:
        await reported(registry, *TABS, client=agent, number=number, now=clock())
    await registry.release_expired(now=clock())
    for client in (await registry.snapshot(now=clock())).clients:
        assert client.used_slots() <= SLOTS
        assert len(client.windows) + client.opening_windows <= WINDOWS


async def _is_free(registry: RedisRegistry, clock: Clock) -> bool:
    await registry.release_expired(now=clock())
    return not any(c.used_slots() for c in (await registry.snapshot(now=clock())).clients)


@contextlib.contextmanager
def _coordinator(url: str, seed: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.stores.acquirers", url, str(seed)]
    with (folder / f"{seed}.out").open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _said(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.out"))
