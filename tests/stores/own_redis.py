"""A Redis that a test has to itself, and may spoil."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from farm.stores.redis import RedisRegistry, connect
from tests.patience import PATIENCE_S
from tests.stores import redis_server
from tests.stores.pool import WINDOW_S

New = Callable[[int], Awaitable[RedisRegistry]]


@pytest.fixture
def own_url(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """A server that a test may spoil."""
    with redis_server.running(tmp_path) as url:
        yield url


def over(url: str, **how: Any) -> RedisRegistry:
    return RedisRegistry(connect(url, timeout_s=20), presence_window_s=WINDOW_S, **how)


async def until_subscribed(redis: Redis) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await redis.pubsub_channels():
            await asyncio.sleep(0.001)
