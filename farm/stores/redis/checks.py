"""What a Redis must be set up as, looked at when the registry is opened."""

from collections.abc import Awaitable
from typing import cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from farm.errors import ConflictError
from farm.stores.redis.connection import store_errors

log = structlog.get_logger()

_UNSAFE = (
    "Redis may throw assignments away when its memory is full: set maxmemory-policy noeviction"
)
_PARTLY = (
    "after a crash Redis would come back with a past state: set appendfsync always, or have it "
    "keep nothing (appendonly no, save '')"
)


async def check_settings(redis: Redis, *, require_noeviction: bool) -> None:
    """Warn of settings that lose what must not be lost.

    Args:
        redis: Whose settings to look at. Where it does not show them, as some hosted ones do not,
            they count as unsafe.
        require_noeviction: Refuse to go on where keys may be evicted.

    Raises:
        ConflictError: If refused.
        StoreUnavailableError: If Redis did not answer.
    """
    settings = await _settings(redis)
    policy = settings.get("maxmemory-policy")
    if policy != "noeviction":
        log.error("redis.may_evict", policy=policy or "not shown", remedy=_UNSAFE)
        if require_noeviction:
            raise ConflictError(f"maxmemory-policy is {policy or 'not shown'}. {_UNSAFE}")
    if _comes_back_with_a_past_state(settings):
        log.warning("redis.partly_durable", remedy=_PARTLY)


def _comes_back_with_a_past_state(settings: dict[str, str]) -> bool:
    if settings.get("appendonly") == "yes":
        return settings.get("appendfsync") != "always"
    return bool(settings.get("save"))


async def _settings(redis: Redis) -> dict[str, str]:
    names = ("maxmemory-policy", "appendonly", "appendfsync", "save")
    with store_errors():
        try:
            found = await cast("Awaitable[dict[str, str]]", redis.config_get(*names))
        except (NoPermissionError, ResponseError):
            return {}
    return found
