"""Which coordinator holds which link, and letters between them, over one shard of a Redis."""

from collections.abc import Awaitable, Sequence
from typing import cast

from farm.core.model import ClientId, LinkId
from farm.stores.ports.routes import LEASE_S, CoordinatorId, Links, Route
from farm.stores.redis.connection import store_errors
from farm.stores.redis.records import pairs
from farm.stores.redis.shard import RedisShard

_LETTERS_AT_ONCE = 100
_WAIT_MS = 1_000
"""Less than a reply of Redis may take."""

Entries = list[tuple[str, dict[str, str]]]


class RedisRoutes:
    """The `Routes` port. Each coordinator's box is a stream, out of which it alone reads.

    Leases end by Redis's clock, which the scripts read; nothing rests on a key's time to live.

    Args:
        shard: The registry whose Redis and store epoch it shares; to be open.
        coordinator: Names this life of this coordinator; no other life may have it.
        lease_s: For how long it is there without renewing.
        box: About how many letters a box holds; the oldest are lost beyond that.
    """

    def __init__(
        self,
        shard: RedisShard,
        *,
        coordinator: CoordinatorId,
        lease_s: float = LEASE_S,
        box: int = 10_000,
    ) -> None:
        self.coordinator = coordinator
        self.lease_s = lease_s
        self._shard = shard
        self._box = box
        self._last_read = "0"

    async def renew(self, links: Links) -> Links:
        """See `Routes.renew`."""
        flat = [part for link in links for part in link]
        _, closed = await self._shard.run("route_renew", self.coordinator, self.lease_s, *flat)
        return [(ClientId(client_id), LinkId(link)) for client_id, link in pairs(closed)]

    async def claim(self, client_id: ClientId, link: LinkId) -> None:
        """See `Routes.claim`."""
        await self._shard.run("route_claim", self.coordinator, self.lease_s, client_id, link)

    async def give_up(self, client_id: ClientId, link: LinkId) -> None:
        """See `Routes.give_up`."""
        await self._shard.run("route_give_up", self.coordinator, client_id, link)

    async def route(self, client_id: ClientId) -> Route | None:
        """See `Routes.route`."""
        outcome, *rest = await self._shard.run("route_find", client_id)
        if outcome != "ok":
            return None
        coordinator, link = rest
        return Route(coordinator=CoordinatorId(coordinator), link=LinkId(link))

    async def is_there(self, coordinator: CoordinatorId) -> bool:
        """See `Routes.is_there`."""
        reply = await self._shard.run("route_there", coordinator)
        return bool(reply[0] == "ok")

    async def post(self, to: CoordinatorId, letter: str) -> bool:
        """See `Routes.post`."""
        reply = await self._shard.run("route_post", to, letter, self._box)
        return bool(reply[0] == "ok")

    async def post_others(self, letter: str) -> None:
        """See `Routes.post_others`."""
        await self._shard.run("route_post", "", letter, self._box, self.coordinator)

    async def receive(self) -> Sequence[str]:
        """See `Routes.receive`."""
        redis, box = self._shard.redis, f"{self._shard.tag}:mail:{self.coordinator}"
        with store_errors():
            found = await cast(
                "Awaitable[list[tuple[str, Entries]]]",
                redis.xread({box: self._last_read}, count=_LETTERS_AT_ONCE, block=_WAIT_MS),
            )
            if not found:
                return ()
            [(_, entries)] = found
            # Remembered first: what is not deleted, because Redis went away, is not read again.
            self._last_read = entries[-1][0]
            await redis.xdel(box, *(number for number, _ in entries))
        return [fields["letter"] for _, fields in entries]

    async def leave(self) -> None:
        """See `Routes.leave`."""
        await self._shard.run("route_leave", self.coordinator)
