"""Wakes over Redis: a counter that each change raises, and a message that it was raised."""

import asyncio
from collections.abc import Awaitable
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from farm.errors import StoreUnavailableError
from farm.stores.redis.connection import FORGOTTEN, store_errors


class RedisWakes:
    """The `Wakes` port. What a script has changed is known to its caller from the reply.

    Args:
        redis: A client from `connect`.
        tag: What the names of all the shard's keys begin with.
        safety_s: How often the counter is read although no message came.
    """

    def __init__(self, redis: Redis, *, tag: str, safety_s: float) -> None:
        self.redis = redis
        self.tag = tag
        self._safety_s = safety_s
        self._store_epoch: int | None = None
        self._generation = 0
        self._subscription: PubSub | None = None
        self._listening = asyncio.Lock()

    def generation(self) -> int:
        """See `Wakes.generation`. It is the last known here, so no later than what is read next."""
        return self._generation

    async def changed_since(self, generation: int) -> None:
        """See `Wakes.changed_since`.

        Raises:
            StoreUnavailableError: If Redis did not answer, or lost its memory meanwhile.
        """
        with store_errors():
            while self._generation <= generation:
                # One reads for all; each message lets the next in the queue look at its number.
                async with self._listening:
                    if self._generation <= generation:
                        await self._listen()

    async def close(self) -> None:
        """Give the subscription's connection back."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.aclose()  # type: ignore[no-untyped-call]

    async def _subscribe(self) -> PubSub:
        if self._subscription is None:
            subscription = self.redis.pubsub(ignore_subscribe_messages=True)
            try:
                await subscription.subscribe(f"{self.tag}:changes")
            except BaseException:
                await subscription.aclose()  # type: ignore[no-untyped-call]
                raise
            self._subscription = subscription
        return self._subscription

    async def _listen(self) -> None:
        """Wait for one message, or as long as is safe, and then look."""
        subscription = await self._subscribe()
        try:
            message = await subscription.get_message(timeout=self._safety_s)
        except Exception:
            await self.close()
            raise
        if message is None:
            # Nothing came; or what came was the answer to the subscription, before which a change
            # may have been missed.
            await self._look()
        else:
            self._learn(int(message["data"]))

    async def _look(self) -> None:
        names = (f"{self.tag}:epoch", f"{self.tag}:generation")
        epoch, generation = await cast("Awaitable[list[str | None]]", self.redis.mget(*names))
        if epoch != str(self._store_epoch):
            raise StoreUnavailableError("Redis has lost its memory", code=FORGOTTEN)
        self._learn(int(generation or 0))

    def _learn(self, generation: int | None) -> None:
        if generation is not None:
            self._generation = max(self._generation, generation)
