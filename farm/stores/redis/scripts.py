"""The Lua scripts, each one atomic step of a port."""

from collections.abc import Awaitable
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from farm.stores.ports.timing import Observe, timed, unobserved

SHARED = (
    *("shard", "state", "leases", "pools", "ready"),
    *("reservations", "exclusions", "rules", "routes"),
)
"""What every script is preceded by; Redis has no way to include."""


class Scripts:
    """Runs scripts by their hash, and brings them to a Redis that does not have them."""

    def __init__(self, redis: Redis, observe: Observe = unobserved) -> None:
        self._redis = redis
        self._observe = observe

    async def run(self, name: str, key: str, *args: str | int | float | bytes) -> list[Any]:
        """Run a script in one round trip, and one more where Redis does not have it yet."""
        text, digest = _script(name)
        with timed(self._observe, "redis", name):
            try:
                return await cast(
                    "Awaitable[list[Any]]", self._redis.evalsha(digest, 1, key, *args)
                )
            except NoScriptError:
                # Nothing has been done, so that doing it again is safe.
                return await cast("Awaitable[list[Any]]", self._redis.eval(text, 1, key, *args))


@cache
def _script(name: str) -> tuple[str, str]:
    folder = files("farm.stores.redis") / "scripts"
    text = "\n".join((folder / f"{part}.lua").read_text() for part in (*SHARED, name))
    # Redis names scripts so; nothing is kept safe by it.
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()
