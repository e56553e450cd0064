"""The four registries over one shard of a Redis."""

from farm.stores.redis.connections import RedisConnections
from farm.stores.redis.contexts import RedisContexts
from farm.stores.redis.exclusions import RedisExclusions
from farm.stores.redis.slots import RedisSlots
from farm.stores.redis.windows import RedisWindows


class RedisRegistry(RedisConnections, RedisContexts, RedisWindows, RedisSlots, RedisExclusions):
    """All registry ports (`Registry`), for any number of coordinators. To be opened first."""
