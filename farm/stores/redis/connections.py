"""Who is there."""

from farm.core.model import Assignment, Client, ClientId, Instant, LinkId, Token
from farm.core.pools import Exclusion, checked_capacity
from farm.core.reservation import Denial
from farm.stores.redis import records
from farm.stores.redis.shard import RedisShard


class RedisConnections(RedisShard):
    """The `ConnectionRegistry` port."""

    async def register(
        self, client: Client, *, epoch_name: str, highest_token: Token | None, now: Instant
    ) -> Client | Denial:
        """See `ConnectionRegistry.register`."""
        metadata = records.metadata_fields(client)
        outcome, *kept = await self.run(
            "register",
            client.client_id,
            client.instance,
            epoch_name,
            client.client_type,
            client.link or "",
            "" if highest_token is None else records.token_text(highest_token),
            repr(now),
            repr(self._window_s),
            int(client.excluded is Exclusion.OPENING_PROBATION),
            len(metadata),
            *metadata,
            *records.client_fields(client),
        )
        return records.client_from(kept[0]) if outcome == "ok" else Denial(outcome)

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.heard`."""
        reply = await self.run("heard", client_id, link, repr(now), repr(self._window_s))
        return bool(reply[0] == "ok")

    async def set_draining(
        self, client_id: ClientId, draining: bool = True, *, because: str = ""
    ) -> None:
        """See `ConnectionRegistry.set_draining`."""
        await self.run("set_draining", client_id, int(draining), because)

    async def set_advertised_capacity(
        self, client_id: ClientId, link: LinkId, max_concurrency: int
    ) -> bool:
        """See `ConnectionRegistry.set_advertised_capacity`."""
        announced = checked_capacity(max_concurrency)
        reply = await self.run("set_capacity", client_id, link, announced)
        return bool(reply[0] == "ok")

    async def fence(self, client_id: ClientId, *, by: str, now: Instant) -> bool:
        """See `ConnectionRegistry.fence`."""
        reply = await self.run("fence", client_id, records.drain_text(by, now))
        return bool(reply[0] == "ok")

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """See `ConnectionRegistry.unlink`."""
        reply = await self.run("unlink", client_id, link)
        return bool(reply[0] == "ok")

    async def remove(
        self, client_id: ClientId, *, epoch: int, seen_at: Instant | None = None
    ) -> tuple[Assignment, ...] | None:
        """See `ConnectionRegistry.remove`."""
        seen = () if seen_at is None else (repr(seen_at),)
        outcome, *ended = await self.run("remove", client_id, epoch, *seen)
        return tuple(map(records.assignment_from, ended[0])) if outcome == "ok" else None
