"""The floor every test of the manager stands on."""

import pytest

from tests.manager.floor import Floor


@pytest.fixture
def floor() -> Floor:
    return Floor()
