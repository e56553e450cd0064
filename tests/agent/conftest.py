"""What the tests of the machine have in common."""

import pytest

from tests.agent.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
