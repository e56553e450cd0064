"""What a coordinator remembers agents in: memory of its own, or a Redis that it shares."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog

from farm.clock import Clock, steady_clock, system_clock
from farm.config import Settings
from farm.core.commands import Retention
from farm.errors import InvalidInputError, StoreUnavailableError
from farm.manager.relay import Relay
from farm.stores.ledger import SqliteDatabase, SqlLedger
from farm.stores.memory import (
    MemoryClusterEvents,
    MemoryCommandLog,
    MemoryParcels,
    MemoryRegistry,
)
from farm.stores.ports.cluster_events import ClusterEvents
from farm.stores.ports.commands import CommandLog
from farm.stores.ports.parcels import Parcels
from farm.stores.ports.registries import Registry
from farm.stores.ports.routes import LEASE_S, CoordinatorId
from farm.stores.ports.timing import Observe, unobserved

if TYPE_CHECKING:
    from farm.stores.ledger.sharing import SqlSharing
    from farm.stores.redis import RedisClock, RedisRegistry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_LOOK_S = 1.0
_RESERVED_S = 120.0
"""What a coordinator has reserved and could not give back is so after this, well after its use."""
_LEASES_PER_WINDOW = 2
"""At least: one that died is known to be gone before its agents are to be given up, and early
enough for them to come back elsewhere before their window ends."""


class Memory(Protocol):
    """How the registry may be lost, and had again."""

    async def lost(self, away: Callable[[str], None]) -> None:
        """Return when it has been forgotten what agents have; `away` hears why it can't be read."""
        ...

    async def begin_again(self) -> None:
        """Go on with nothing; to be called when nobody uses it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What `main` builds on."""

    registry: Registry
    commands: CommandLog
    events: ClusterEvents
    clock: Clock
    memory: Memory
    parcels: Parcels
    relay: Relay | None = None
    coordinator: str | None = None
    """This one's name among those that share; None where it is alone."""


def ledger_of(settings: Settings, observe: Observe = unobserved) -> SqlLedger:
    """Make the ledger that the settings ask for; it is not open yet.

    Raises:
        InvalidInputError: If they ask for PostgreSQL, and its client is not installed.
    """
    if settings.ledger.url is None:
        return SqlLedger(SqliteDatabase(settings.data_dir / "farm.db"), observe=observe)
    try:
        from farm.stores.ledger.postgres import PostgresDatabase, Share
    except ModuleNotFoundError as error:
        raise without_extra(error, "asyncpg", "postgres", "FARM_LEDGER__URL") from error
    share = None
    if settings.shares_ledger:
        share = Share(name=_name(settings.data_dir), lease_s=settings.ledger.lease_s)
    return SqlLedger(
        PostgresDatabase(settings.ledger.url.get_secret_value(), share), observe=observe
    )


def shared_of(settings: Settings, ledger: SqlLedger) -> "SqlSharing | None":
    """Return an open ledger as one that others share; None where they don't."""
    if not settings.shares_ledger:
        return None
    from farm.stores.ledger.postgres import PostgresDatabase
    from farm.stores.ledger.sharing import SqlSharing

    database = ledger.database
    return SqlSharing(database) if isinstance(database, PostgresDatabase) else None


@contextlib.asynccontextmanager
async def stores_of(
    settings: Settings, store_epoch: int, observe: Observe = unobserved
) -> AsyncIterator[Stores]:
    """Open the stores that the settings ask for.

    Raises:
        InvalidInputError: If they ask for a Redis and its client is not installed.
        ConflictError: If the Redis might forget what it must not.
        StoreUnavailableError: If the Redis does not answer.
    """
    if settings.redis.url is None:
        yield Stores(
            registry=MemoryRegistry(
                store_epoch=store_epoch, presence_window_s=settings.link.window_s
            ),
            commands=MemoryCommandLog(since=system_clock(), retention=_retention(settings)),
            events=MemoryClusterEvents(system_clock),
            clock=system_clock,
            memory=_OwnMemory(),
            parcels=MemoryParcels(CoordinatorId("farm")),
        )
        return
    url = settings.redis.url.get_secret_value()
    async with _shared(settings, url, store_epoch, observe) as stores:
        yield stores


@contextlib.asynccontextmanager
async def _shared(
    settings: Settings, url: str, life: int, observe: Observe
) -> AsyncIterator[Stores]:
    try:
        from farm.stores.redis import (
            RedisClock,
            RedisClusterEvents,
            RedisCommandLog,
            RedisParcels,
            RedisRegistry,
            RedisRoutes,
            connect,
        )
    except ModuleNotFoundError as error:
        raise without_extra(error, "redis", "redis", "FARM_REDIS__URL") from error
    name = _name(settings.data_dir)
    me = CoordinatorId(f"{name}-{life}")
    window_s = settings.link.window_s
    lease_s = min(LEASE_S, window_s / _LEASES_PER_WINDOW)
    redis, carrying = connect(url), connect(url, decode=False)
    registry = RedisRegistry(
        redis,
        presence_window_s=window_s,
        coordinator=me,
        lease_s=lease_s,
        reservation_timeout_s=_RESERVED_S + settings.jobs.provision_timeout_s,
        shard=settings.redis.shard,
        require_noeviction=settings.redis.require_noeviction,
        observe=observe,
    )
    try:
        clock = RedisClock(redis, steady=steady_clock)
        memory = _SharedMemory(registry, clock)
        await memory.begin_again()
        log.info("redis.shared", shard=settings.redis.shard, coordinator=name)
        routes = RedisRoutes(registry, coordinator=me, lease_s=lease_s)
        yield Stores(
            registry=registry,
            commands=RedisCommandLog(registry, retention=_retention(settings)),
            events=RedisClusterEvents(registry, clock),
            clock=clock,
            memory=memory,
            parcels=RedisParcels(registry, carrying, coordinator=me),
            relay=Relay(routes),
            coordinator=name,
        )
    finally:
        await registry.close()
        await carrying.aclose()
        await redis.aclose()


def without_extra(
    error: ModuleNotFoundError, module: str, extra: str, setting: str
) -> InvalidInputError | ModuleNotFoundError:
    """Say what to install, where the module of an extra is what is missing."""
    if (error.name or "").partition(".")[0] != module:
        return error
    return InvalidInputError(f"{setting} needs the extra `{extra}`: pip install 'tabfarm[{extra}]'")


class _OwnMemory:
    async def lost(self, away: Callable[[str], None]) -> None:
        await asyncio.Event().wait()

    async def begin_again(self) -> None:
        pass


class _SharedMemory:
    """Looks whether Redis still has the store epoch that was opened, and keeps its time."""

    def __init__(self, registry: "RedisRegistry", clock: "RedisClock") -> None:
        self._registry = registry
        self._clock = clock
        self._epoch: int | None = None

    async def lost(self, away: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                if await self._registry.store_epoch() != self._epoch:
                    return
                await self._clock.read()
            except StoreUnavailableError as error:
                away(error.detail)

    async def begin_again(self) -> None:
        await self._clock.read()
        # Each coordinator counts its own starts, so only the time is greater than any before.
        self._epoch = await self._registry.open(store_epoch=int(self._clock() * 1000))


def _retention(settings: Settings) -> Retention:
    kept = settings.commands
    return Retention(keep=kept.keep, keep_s=kept.keep_s, payload_bytes=kept.payload_bytes)


def _name(data_dir: Path) -> str:
    """Return the name that goes with the ledger: made at the first start, and kept beside it."""
    path = data_dir / "coordinator.name"
    if not path.exists():
        path.write_text(f"{socket.gethostname()}-{secrets.token_hex(4)}\n")
    return path.read_text().strip()
