"""The floor every test of the manager stands on, over each of the stores."""

from typing import Any

import pytest

from farm.manager import waiting
from tests.manager.floor import Floor
from tests.stores.conftest import new_redis_registry, new_registry, redis_url
from tests.stores.pool import NewRegistry


@pytest.fixture(autouse=True)
def _none_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is woken, and is not saved by the look that it takes now and then."""
    monkeypatch.setattr(waiting, "_SAFETY_S", 3600.0)


@pytest.fixture
async def floor(new_registry: NewRegistry) -> Floor:
    floor = Floor()
    registry: Any = await new_registry(1)
    floor.registry = registry
    return floor


__all__ = ["floor", "new_redis_registry", "new_registry", "redis_url"]
