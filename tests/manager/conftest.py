"""The floor every test of the manager stands on, over each of the stores."""

from typing import Any

import pytest

from tests.manager.floor import Floor
from tests.stores.conftest import new_redis_registry, new_registry, redis_url
from tests.stores.pool import NewRegistry


@pytest.fixture
async def floor(new_registry: NewRegistry) -> Floor:
    floor = Floor()
    registry: Any = await new_registry(1)
    floor.registry = registry
    return floor


__all__ = ["floor", "new_redis_registry", "new_registry", "redis_url"]
