"""What the measurements of the pool are taken on: registries full of agents, and a bare Redis."""

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from redis.asyncio import Redis

from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    TaskId,
    Window,
    WindowId,
)
from farm.manager import WorkerContextManager
from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry, connect, records
from tests.stores import redis_server

NS = Namespace("bench")
TABS = 50
"""Tabs of one agent, each in a window of its own."""
NOW = Instant(1_000_000.0)
_LINK = LinkId("link")
_SHARDS = itertools.count()


@dataclass(eq=False)
class Pool:
    """A registry with agents, and a manager over it. The clock stands still."""

    registry: MemoryRegistry | RedisRegistry
    numbers: dict[ClientId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.manager = WorkerContextManager(
            context_registry=self.registry,
            connection_registry=self.registry,
            task_timeout_ms=0,
            clock=lambda: NOW,
        )

    async def agent(self, name: str, *, tabs: int = TABS, slots: int = TABS) -> ClientId:
        """Let an agent in and have it report its tabs."""
        client = Client(
            client_id=ClientId(name),
            client_type=ClientType.BROWSER,
            link=_LINK,
            epoch=0,
            instance=name,
            namespaces=(NS,),
            metadata={"region": "eu", "node": name},
            capacity=Capacity(max_concurrency=slots, max_windows=tabs),
            seen_at=NOW,
        )
        await self.registry.register(client, epoch_name="1", highest_token=None, now=NOW)
        self.numbers[client.client_id] = 0
        await self.report(client.client_id, tabs)
        return client.client_id

    async def report(self, client_id: ClientId, tabs: int = TABS) -> None:
        """Report every tab idle and clean."""
        self.numbers[client_id] += 1
        outcome = await self.registry.report(
            client_id,
            _LINK,
            epoch=1,
            number=self.numbers[client_id],
            windows=[Window(window_id=WindowId(f"W{n}")) for n in range(tabs)],
            contexts=[
                Context(context_id=ContextId(f"T{n}"), window_id=WindowId(f"W{n}"))
                for n in range(tabs)
            ],
            now=NOW,
        )
        assert outcome == ()

    async def fill(self, contexts: int) -> None:
        """Have so many contexts, half of them held."""
        for n in range(max(1, contexts // TABS)):
            await self.agent(f"agent-{n:05}")
        for n in range(contexts // 2):
            assert await self.manager.acquire(NS, f"held-{n}") is not None

    async def lend(self, task: str, **how: Any) -> tuple[Assignment, float, float]:
        """Acquire and release; return what was held and how long each of both took."""
        begun = perf_counter()
        handle = await self.manager.acquire(NS, task, **how)
        had = perf_counter()
        assert handle is not None
        await handle.release()
        return handle.assignment, had - begun, perf_counter() - had


class Bare:
    """A script that does nothing, asked as the registry asks its own."""

    _TEXT = "return {'ok', false, 'agent-00000', 'T00', '1', '1:1700000000000000'}"

    def __init__(self, redis: Redis, args: list[Any]) -> None:
        self._redis = redis
        self._args = args
        self._digest = sha1(self._TEXT.encode(), usedforsecurity=False).hexdigest()

    async def load(self) -> None:
        await self._redis.script_load(self._TEXT)

    async def ask(self) -> float:
        """Return how long one call took."""
        begun = perf_counter()
        await cast("Any", self._redis.evalsha(self._digest, 1, "{bench}:epoch", *self._args))
        return perf_counter() - begun


async def bare_of(pool: Pool) -> Bare | None:
    """Return one on the Redis of a pool that has one, with a request's arguments."""
    if not isinstance(pool.registry, RedisRegistry):
        return None
    text = records.request_text(Request(namespace=NS, task_id=TaskId("t")))
    bare = Bare(pool.registry.redis, [1, text, repr(NOW), "60.0", repr(NOW + 1e9), "spread"])
    await bare.load()
    return bare


def memory() -> Pool:
    """Return an empty pool in memory."""
    return Pool(MemoryRegistry(store_epoch=1, presence_window_s=60.0))


@contextlib.contextmanager
def redis_running() -> Iterator[str]:
    """Run a Redis; give its URL."""
    with tempfile.TemporaryDirectory() as folder, redis_server.running(Path(folder)) as url:
        yield url


@contextlib.asynccontextmanager
async def over_redis(url: str, *, shard: str | None = None) -> AsyncIterator[Pool]:
    """Give a pool over a shard of a Redis; an empty one if no shard is named."""
    redis = connect(url)
    name = shard or f"{next(_SHARDS)}"
    registry = RedisRegistry(redis, presence_window_s=60.0, shard=name)
    await registry.open(store_epoch=1)
    try:
        yield Pool(registry)
    finally:
        await registry.close()
        await redis.aclose()


async def evalsha_calls(redis: Redis) -> int:
    """Count the scripts run so far."""
    info = await redis.info("commandstats")
    return int(info.get("cmdstat_evalsha", {}).get("calls", 0))


async def settled() -> None:
    """Give a waiter the time to have looked and to be parked."""
    await asyncio.sleep(0.01)
