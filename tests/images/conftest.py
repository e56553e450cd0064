import os
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp.test_utils import TestServer

from examples.shop import build_app
from tests.images import building

Built = Callable[[str, str | None], building.Image]


@pytest.fixture(scope="session")
def built() -> Built:
    """Builds an image of ours: by the name of its Dockerfile and a target.

    Skips where that is impossible, unless CI is set: there it fails.
    """
    if (reason := building.obstacle()) is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)

    def build(name: str, target: str | None = None) -> building.Image:
        tag = f"tabfarm-{name}" + (f":{target}" if target else "")
        return building.build(f"docker/{name}.Dockerfile", name=tag, target=target)

    return build


@pytest.fixture
async def shop() -> AsyncIterator[str]:
    async with TestServer(build_app()) as server:
        yield f"http://127.0.0.1:{server.port}"
