"""A registry in memory and one over Redis that are told the same, and must answer alike."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

from farm.stores.memory import MemoryRegistry
from farm.stores.redis import RedisRegistry, connect
from tests.stores.both import Both
from tests.stores.conftest import shards
from tests.stores.pool import RESERVED_S, WINDOW_S, Everything
from tests.stores.pool_machine import Machine


def memory() -> MemoryRegistry:
    return MemoryRegistry(
        store_epoch=1, presence_window_s=WINDOW_S, reservation_timeout_s=RESERVED_S
    )


class SideBySide(Machine):
    """Both answer alike."""

    url: str

    def new(self) -> Everything:
        self.redis, self.shard = connect(self.url), f"{next(shards)}"
        self.second = self.over_redis()
        self.both = Both(memory(), self.second)
        return self.both

    def over_redis(self, **whose: Any) -> RedisRegistry:
        made = RedisRegistry(
            self.redis,
            presence_window_s=WINDOW_S,
            reservation_timeout_s=RESERVED_S,
            shard=self.shard,
            **whose,
        )
        self.do(made.open(store_epoch=1))
        return made

    def teardown(self) -> None:
        if hasattr(self, "redis"):
            self.do(self.redis.aclose())
        super().teardown()

    @invariant()
    def both_have_told_waiters_of_the_same(self) -> None:
        assert not hasattr(self, "both") or self.both.woke_alike()


@pytest.fixture(autouse=True)
def at_the_tests_server(redis_url: str) -> None:
    SideBySide.url = redis_url


quick = settings(max_examples=50, stateful_step_count=30, deadline=None)
