"""The registries of a farm whose coordinators share a Redis."""

from farm.stores.redis.clock import RedisClock
from farm.stores.redis.cluster_events import RedisClusterEvents
from farm.stores.redis.commands import RedisCommandLog
from farm.stores.redis.connection import connect
from farm.stores.redis.parcels import RedisParcels
from farm.stores.redis.registry import RedisRegistry
from farm.stores.redis.routes import RedisRoutes

__all__ = [
    "RedisClock",
    "RedisClusterEvents",
    "RedisCommandLog",
    "RedisParcels",
    "RedisRegistry",
    "RedisRoutes",
    "connect",
]
