"""How a whole coordinator ends what is connected to it."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog

from farm.config import Settings
from farm.main import coordinator
from farm.protocol import messages as wire
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def is_listening(url: str) -> bool:
    """Try at once: nothing else of this process has its turn meanwhile."""
    at = urlsplit(url)
    try:
        socket.create_connection((at.hostname, at.port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


HELLO = wire.Hello(
    client_id="a",
    client_type="console",
    epoch="one",
    instance="one",
    capacity=wire.Capacity(max_concurrency=1),
)


async def test_a_stopping_farm_listens_no_more_when_it_lets_its_agents_go(tmp_path: Path) -> None:
    welcomed: asyncio.Queue[str] = asyncio.Queue()

    async def agent(url: str, token: str) -> tuple[int | None, bool]:
        head = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{url}/v1/agent", headers=head) as link,
        ):
            await link.send_str(HELLO.model_dump_json())
            async for frame in link:
                welcomed.put_nowait(frame.data)
            return link.close_code, is_listening(url)

    async def farm(group: asyncio.TaskGroup) -> asyncio.Task[tuple[int | None, bool]]:
        async with coordinator(Settings(data_dir=tmp_path, port=0, log_level="error")) as running:
            token = await running.mint_agent_token("a")
            dialled = group.create_task(agent(running.url, token))
            await welcomed.get()
            assert is_listening(running.url)
        return dialled

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        dialled = await farm(group)
    assert dialled.result() == (aiohttp.WSCloseCode.GOING_AWAY, False)
