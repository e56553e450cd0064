"""Every implementation of every port, as parameters of one fixture a port."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from farm.stores.ledger import SqliteDatabase, SqlLedger
from farm.stores.ledger.postgres import PostgresDatabase
from farm.stores.memory import MemoryRegistry
from farm.stores.ports.ledger import Ledger
from farm.stores.redis import RedisRegistry, connect
from tests.stores import bucket_server, postgres_server, redis_server
from tests.stores.pool import RESERVED_S, WINDOW_S, Everything, NewRegistry

shards = count()
_DATABASES = 8


class Databases:
    """Databases of one server, each of its own test, with a schema that is up to date.

    The latest eight are there; those before are of tests that are over.
    """

    def __init__(self, server: postgres_server.Server) -> None:
        self.server = server
        self._numbers = count()
        self._names: deque[str] = deque()

    def new(self) -> str:
        """Make one, and return its URL."""
        name = f"farm_{next(self._numbers)}"
        self.server.sql(f"CREATE DATABASE {name} TEMPLATE migrated")
        self._names.append(name)
        if len(self._names) > _DATABASES:
            self.server.sql(f"DROP DATABASE {self._names.popleft()} WITH (FORCE)")
        return self.server.url(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    """A PostgreSQL of the tests' own; where there is none they skip, and fail where CI is set."""
    try:
        with postgres_server.running() as server:
            server.sql("CREATE DATABASE migrated")
            with ThreadPoolExecutor(1) as pool:  # another plugin's loop may be running in this one
                pool.submit(asyncio.run, _migrate(server.url("migrated"))).result()
            yield Databases(server)
    except postgres_server.NoServerError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


async def _migrate(url: str) -> None:
    database = PostgresDatabase(url)
    await database.open()
    await database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Ledger]:
    """Make ledgers that are not open yet, each over the same data."""
    if request.param == "sqlite":
        return lambda: SqlLedger(SqliteDatabase(tmp_path / "farm.db"))
    url = request.getfixturevalue("postgres").new()
    return lambda: SqlLedger(PostgresDatabase(url))


@pytest.fixture
async def ledger(new_ledger: Callable[[], Ledger]) -> AsyncIterator[Ledger]:
    ledger = new_ledger()
    await ledger.open()
    yield ledger
    await ledger.close()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of the tests' own. Skips where there is none, unless CI is set: there it fails."""
    try:
        redis_server.executable()
    except redis_server.NoServerError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    with redis_server.running(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def s3_server() -> Iterator[bucket_server.Server]:
    with bucket_server.running() as server:
        yield server


@pytest.fixture
def s3(s3_server: bucket_server.Server, monkeypatch: pytest.MonkeyPatch) -> bucket_server.Server:
    """An S3-compatible store that the environment tells of."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
async def new_redis_registry(
    redis_url: str,
) -> AsyncIterator[Callable[[int], Awaitable[RedisRegistry]]]:
    """Make registries that are open, each over an empty shard of one Redis."""
    redis = connect(redis_url)
    made: list[RedisRegistry] = []

    async def new(epoch: int) -> RedisRegistry:
        made.append(
            RedisRegistry(
                redis,
                presence_window_s=WINDOW_S,
                reservation_timeout_s=RESERVED_S,
                shard=f"{next(shards)}",
            )
        )
        assert await made[-1].open(store_epoch=epoch) == epoch
        return made[-1]

    yield new
    for registry in made:
        await registry.close()
    await redis.aclose()


@pytest.fixture(params=["memory", "redis"])
def new_registry(request: pytest.FixtureRequest) -> NewRegistry:
    """Make registries of a store epoch."""

    async def memory(epoch: int) -> Everything:
        return MemoryRegistry(
            store_epoch=epoch, presence_window_s=WINDOW_S, reservation_timeout_s=RESERVED_S
        )

    if request.param == "memory":
        return memory
    made: NewRegistry = request.getfixturevalue("new_redis_registry")
    return made


@pytest.fixture
async def registry(new_registry: NewRegistry) -> Everything:
    return await new_registry(1)
