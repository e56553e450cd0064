"""Who is not to be chosen for now."""

from collections.abc import Mapping

from farm.core.model import ClientId, Instant, LinkId
from farm.core.pools import Exclusion
from farm.stores.redis.records import exclusions_from, flat
from farm.stores.redis.shard import RedisShard


class RedisExclusions(RedisShard):
    """The port `Reachability`."""

    async def publish_exclusions(
        self,
        coordinator: str,
        excluded: Mapping[ClientId, Exclusion],
        *,
        now: Instant,
        lease_s: float,
    ) -> None:
        """See `Reachability.publish_exclusions`."""
        kinds = flat({client_id: kind.value for client_id, kind in excluded.items()})
        await self.run("publish_exclusions", coordinator, repr(now), repr(now + lease_s), *kinds)

    async def proven(self, client_id: ClientId, link: LinkId) -> bool:
        """See `Reachability.proven`."""
        reply = await self.run("proven", client_id, link)
        return bool(reply[0] == "ok")

    async def exclusions(self, *, now: Instant) -> Mapping[ClientId, Exclusion]:
        """See `Reachability.exclusions`."""
        _, found = await self.run("exclusions_all", repr(now))
        return exclusions_from(found)
