"""Which stores a coordinator is built on, by its settings."""

import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from farm.clock import system_clock
from farm.config import RedisSettings, Settings
from farm.errors import ConflictError, InvalidInputError, StoreUnavailableError
from farm.main.stores import stores_of
from farm.stores.redis import connect
from tests.stores import redis_server
from tests.stores.conftest import redis_url
from tests.stores.pool import registered

__all__ = ["redis_url"]


def settings(folder: Path, url: str | None, **redis: object) -> Settings:
    where = None if url is None else SecretStr(url)
    return Settings(data_dir=folder, redis=RedisSettings.model_validate({"url": where, **redis}))


async def test_without_a_redis_it_has_its_agents_to_itself(tmp_path: Path) -> None:
    async with stores_of(settings(tmp_path, None), 1) as stores:
        assert (stores.coordinator, stores.relay) == (None, None)
        assert stores.clock is system_clock
    assert not (tmp_path / "coordinator.name").exists()


async def test_its_name_goes_with_its_data_directory(tmp_path: Path, redis_url: str) -> None:
    names = []
    for folder in ("one", "one", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
        async with stores_of(settings(tmp_path / folder, redis_url, shard="names"), 1) as stores:
            assert stores.relay is not None
            names.append(stores.coordinator)
    assert names[0] == names[1] != names[2]


async def test_it_shares_with_those_of_its_shard_and_with_no_others(
    tmp_path: Path, redis_url: str
) -> None:
    mine = settings(tmp_path, redis_url, shard="mine")
    other = settings(tmp_path, redis_url, shard="other")
    async with (
        stores_of(mine, 1) as first,
        stores_of(mine, 2) as second,
        stores_of(other, 1) as third,
    ):
        await registered(first.registry, now=first.clock())
        seen = [
            [c.client_id for c in (await stores.registry.snapshot(now=stores.clock())).clients]
            for stores in (first, second, third)
        ]
        assert seen == [["a"], ["a"], []]


async def test_a_redis_that_may_evict_is_refused_unless_that_is_allowed(
    tmp_path: Path, redis_url: str
) -> None:
    with redis_server.running(tmp_path, "--maxmemory-policy", "allkeys-lru") as url:
        with pytest.raises(ConflictError, match="noeviction"):
            async with stores_of(settings(tmp_path, url), 1):
                pass
        async with stores_of(settings(tmp_path, url, require_noeviction=False), 1) as stores:
            assert stores.coordinator is not None


async def test_a_redis_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="Redis did not answer"):
        async with stores_of(settings(tmp_path, f"unix://{tmp_path}/none.sock"), 1):
            pass


@pytest.fixture
def without_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's package can't be imported."""
    for name in list(sys.modules):
        if name.split(".")[0] == "redis" or name.startswith("farm.stores.redis"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)


async def test_without_the_extra_it_is_named(tmp_path: Path, without_redis: None) -> None:
    with pytest.raises(InvalidInputError, match=r"tabfarm\[redis\]"):
        async with stores_of(settings(tmp_path, "redis://localhost"), 1):
            pass


async def test_the_loss_of_its_memory_is_noticed_and_it_begins_again_under_a_greater_number(
    tmp_path: Path, redis_url: str
) -> None:
    away: list[str] = []
    with redis_server.running(tmp_path) as url:
        one, two = settings(tmp_path / "one", url), settings(tmp_path / "two", url)
        for each in (one, two):
            each.data_dir.mkdir()
        async with stores_of(one, 1) as first, stores_of(two, 1) as second:
            redis = connect(url)
            before = str(await redis.get("{farm:0}:epoch"))
            await redis.flushall()
            for stores in (first, second):
                await stores.memory.lost(away.append)
                await stores.memory.begin_again()
                snapshot = await stores.registry.snapshot(now=stores.clock())
                assert snapshot.clients == ()
            assert int(str(await redis.get("{farm:0}:epoch"))) > int(before)
            await redis.aclose()
    assert away == []
