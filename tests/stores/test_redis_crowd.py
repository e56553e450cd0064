"""Two hundred who ask at once for fifty contexts, from two processes that may be killed."""

import asyncio
import contextlib
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.core.model import Capacity, Client, Instant, Token
from farm.stores.redis import RedisRegistry
from farm.stores.redis.records import token_from
from tests.stores import redis_server
from tests.stores.acquirers import AGENTS, TABS, registry_at
from tests.stores.crowd import TIMEOUT_MS
from tests.stores.pool import at, hello, registered, reported

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("ROUNDS", "200"))
KILLS = ROUNDS // 50
ASKERS = 100
ROOM = len(AGENTS) * len(TABS)


class Half:
    """One of the two processes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def hear(self) -> str:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the process has ended by itself"
        return line.decode()

    async def won(self) -> dict[tuple[str, str], Token]:
        found = {(c, t): token_from(token) for c, t, token in json.loads(await self.hear())}
        return {where: token for where, token in found.items() if token is not None}

    async def released(self) -> int:
        self.say("")
        return int(await self.hear())

    async def die(self) -> None:
        self.process.kill()
        await self.process.wait()


@contextlib.asynccontextmanager
async def half(url: str) -> AsyncIterator[Half]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.stores.crowd",
        url,
        str(ASKERS),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Half(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class Floor:
    """The agents, and what is known of the tokens they have been held under."""

    def __init__(self, registry: RedisRegistry, agents: list[Client]) -> None:
        self._registry = registry
        self._agents = agents
        self._highest: dict[tuple[str, str], Token] = {}

    async def cleaned(self, number: int, now: Instant) -> None:
        for agent in self._agents:
            await reported(self._registry, *TABS, client=agent, number=number, now=now)

    async def held(self, now: Instant) -> dict[tuple[str, str], Token]:
        return {
            (client.client_id, context_id): assignment.token
            for client in (await self._registry.snapshot(now=now)).clients
            for context_id, assignment in client.assignments.items()
        }

    def take(self, held: dict[tuple[str, str], Token]) -> None:
        """Tokens only grow."""
        assert len(set(held.values())) == len(held)
        for where, token in held.items():
            assert token > self._highest.get(where, Token(store_epoch=0, counter=0))
        self._highest |= held


@pytest.mark.slow
async def test_exactly_as_many_win_as_there_is_room_though_some_who_ask_are_killed(
    redis_url: str, tmp_path: Path
) -> None:
    dice = random.Random(1)
    kills = set(dice.sample(range(1, ROUNDS), KILLS))
    with redis_server.running(tmp_path) as url:
        registry = registry_at(url)
        await registry.open(store_epoch=1)
        floor = Floor(registry, [await _agent(registry, name) for name in AGENTS])
        async with contextlib.AsyncExitStack() as stack:
            halves = [await stack.enter_async_context(half(url)) for _ in range(2)]
            for number in range(1, ROUNDS + 1):
                now = at(number * 10 * TIMEOUT_MS / 1000)
                await floor.cleaned(number, now)
                for one in halves:
                    one.say(str(now))
                if number in kills:
                    await _with_a_death(floor, halves, now, dice)
                    await registry.release_expired(now=Instant(now + 2 * TIMEOUT_MS / 1000))
                    halves.append(await stack.enter_async_context(half(url)))
                else:
                    await _in_peace(floor, halves, now)
                assert await floor.held(now) == {}
        await registry.redis.aclose()


async def _agent(registry: RedisRegistry, name: str) -> Client:
    capacity = Capacity(max_concurrency=len(TABS), max_windows=len(TABS))
    return await registered(registry, hello(name, capacity=capacity), epoch=name)


async def _in_peace(floor: Floor, halves: list[Half], now: Instant) -> None:
    one, other = [await each.won() for each in halves]
    assert len(one) + len(other) == ROOM
    assert await floor.held(now) == one | other
    floor.take(one | other)
    assert [await each.released() for each in halves] == [len(one), len(other)]


async def _with_a_death(
    floor: Floor, halves: list[Half], now: Instant, dice: random.Random
) -> None:
    """Kill one of them once some of the room is taken; what it holds nobody else is given."""
    some = dice.randint(0, ROOM)
    while len(await floor.held(now)) < some:
        pass
    await halves.pop(dice.randrange(2)).die()
    (survivor,) = halves
    won, held = await survivor.won(), await floor.held(now)
    assert len(held) <= ROOM
    assert won.items() <= held.items()
    floor.take(held)
    assert await survivor.released() == len(won)
