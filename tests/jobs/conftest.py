"""A Redis for coordinators that share one, and waits that only a wake ends."""

import pytest

from farm.jobs import dispatcher
from tests.stores.conftest import new_redis_registry, postgres, redis_url

__all__ = ["new_redis_registry", "postgres", "redis_url"]


@pytest.fixture(autouse=True)
def no_wake_is_made_good_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the look that a dispatcher takes now and then would hide each that is lost."""
    monkeypatch.setattr(dispatcher, "_SAFETY_S", 600.0)
