"""A Redis for coordinators that share one."""

from tests.stores.conftest import new_redis_registry, postgres, redis_url

__all__ = ["new_redis_registry", "postgres", "redis_url"]
