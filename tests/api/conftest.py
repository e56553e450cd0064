"""A farm's API to ask, without agents."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.stack import Stack, running


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack
