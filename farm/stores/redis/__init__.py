"""The registries of a farm whose coordinators share a Redis."""

from farm.stores.redis.clock import RedisClock
from farm.stores.redis.connection import connect
from farm.stores.redis.registry import RedisRegistry

__all__ = ["RedisClock", "RedisRegistry", "connect"]
