"""What the parts of `RedisRegistry` share: one shard's store epoch, scripts and wakes."""

from collections.abc import Awaitable, Sequence
from typing import Any, cast

from redis.asyncio import Redis

from farm.core.model import Client, Instant
from farm.errors import StoreUnavailableError
from farm.stores.ports.routes import LEASE_S, CoordinatorId
from farm.stores.ports.timing import Observe, unobserved
from farm.stores.redis.checks import check_settings
from farm.stores.redis.connection import store_errors
from farm.stores.redis.picture import Picture
from farm.stores.redis.scripts import Scripts
from farm.stores.redis.unwanted import Unwanted
from farm.stores.redis.wakes import RedisWakes


class RedisShard(RedisWakes):
    """One shard of a Redis; all keys have its hash tag, so that scripts never cross slots.

    Nothing is forgotten by a key's time to live: times are in the records, and compared with the
    caller's `now`, which comes from a `RedisClock`.

    The *store epoch* tells whether this is still the memory that was opened. It is kept in Redis,
    and each script looks at it first: a Redis that restarted empty answers every call with
    StoreUnavailableError until its owner has opened it again, under a greater number. So nothing
    is ever taken for free, finished or away because it is missing. What the owner does then is
    what it does after a restart with memory registries: let the agents register and report, and
    `restore` what they still run.

    Args:
        redis: A client from `connect`.
        presence_window_s: An agent not heard of for longer is not present.
        coordinator: Names this life of this coordinator, as its `RedisRoutes` does: what it
            reserves is given back once its lease has lapsed. None has no lease.
        lease_s: For how long it is there without renewing; the same as that of its routes.
        reservation_timeout_s: For how long a window or tab being created is believed in, whoever
            is there; then `release_expired` gives it back. To be well above the time that
            coordinators wait for one.
        shard: Names the shard.
        require_noeviction: Refuse to open a Redis that may evict keys; else only warn.
        safety_s: How often a waiter looks although no message of a change came.
        observe: Is told how long each script took.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        presence_window_s: float,
        coordinator: CoordinatorId | None = None,
        lease_s: float = LEASE_S,
        reservation_timeout_s: float = 120.0,
        shard: str = "0",
        require_noeviction: bool = False,
        safety_s: float = 5.0,
        observe: Observe = unobserved,
    ) -> None:
        super().__init__(redis, tag=f"{{farm:{shard}}}", safety_s=safety_s)
        self.shard = shard
        self._window_s = presence_window_s
        self._coordinator = coordinator
        self._lease_s = lease_s
        self._unwanted = Unwanted()
        self._reservation_timeout_s = reservation_timeout_s
        self._require_noeviction = require_noeviction
        self._scripts = Scripts(redis, observe)
        self._picture = Picture()

    async def open(self, *, store_epoch: int) -> int:
        """Begin, or begin again after Redis lost its memory; return the store epoch in force.

        Args:
            store_epoch: The one to give a Redis that has none; must be greater than any before,
                as the time is, in whatever unit. Tokens begin with it.

        Raises:
            ConflictError: If the settings are refused.
            StoreUnavailableError: If Redis did not answer.
        """
        await check_settings(self.redis, require_noeviction=self._require_noeviction)
        with store_errors():
            await self.redis.set(f"{self.tag}:epoch", store_epoch, nx=True)
        found = await self.store_epoch()
        if found is None:
            raise StoreUnavailableError("Redis lost its memory while it was opened")
        if found != self._store_epoch:
            self._store_epoch, self._generation = found, 0
            self._picture = Picture()
        with store_errors():
            await self._look()
        return found

    async def store_epoch(self) -> int | None:
        """Return the store epoch that Redis has now; None where it has lost its memory.

        Raises:
            StoreUnavailableError: If Redis did not answer.
        """
        with store_errors():
            found = await cast("Awaitable[str | None]", self.redis.get(f"{self.tag}:epoch"))
        return None if found is None else int(found)

    async def run(
        self, name: str, *args: str | int | float | bytes, scripts: Scripts | None = None
    ) -> list[Any]:
        """Run one script: `ok`, `no` or a denial, the generation if it changed, and the rest.

        Over `scripts` it runs on the connections of another client.
        """
        epoch = self._store_epoch
        if epoch is None:
            raise StoreUnavailableError("the registry is not open")
        with store_errors():
            runs = scripts or self._scripts
            outcome, *rest = await runs.run(name, f"{self.tag}:epoch", epoch, *args)
        if rest:
            generation = rest.pop(0)
            if epoch == self._store_epoch:
                self._learn(generation)
        return [outcome, *rest]

    async def _read(self, now: Instant) -> tuple[tuple[Client, ...], Sequence[Client]]:
        picture = self._picture

        async def news(revision: str, at_most: int) -> list[Any]:
            reply = await self.run("snapshot", revision, at_most, repr(now))
            if picture is not self._picture:
                raise StoreUnavailableError("Redis was opened anew meanwhile")
            return reply

        return await picture.read(news)
