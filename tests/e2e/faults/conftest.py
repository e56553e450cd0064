"""A farm for the faults that a farm outlives, houses for the others, and a place to go to."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.sdk import FarmClient
from tests.e2e.faults.house import House, living
from tests.e2e.faults.place import Place, opened

MAX_ARTIFACT_BYTES = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tough:
    """A farm of one agent with one slot, run by `farm up`."""

    house: House
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="session")
def tough(tmp_path_factory: pytest.TempPathFactory, chromium_executable: str) -> Iterator[Tough]:
    """Lives through the whole session, whatever is done to its agent and browser.

    Pages may go to 127.0.0.1, and to where clouds keep their secrets as far as policy goes.
    """
    settings = {"FARM_ARTIFACTS__MAX_BYTES": str(MAX_ARTIFACT_BYTES)}
    house = House(root=tmp_path_factory.mktemp("tough"), settings=settings)
    try:
        allow = ("--allow", "127.0.0.1", "--allow", "169.254.0.0/16")
        # In a thread of its own, because another plugin's loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            farm = pool.submit(lambda: asyncio.run(house.up(*allow))).result()
        yield Tough(house=house, process=farm)
        assert farm.poll() is None, house.said()
        browsers = house.chromium()
        farm.send_signal(signal.SIGINT)
        assert farm.wait(10) == 0, house.said()
        assert living(browsers) == []
        # Whoever goes away in the middle, and whatever dies, is nothing the farm did not expect.
        assert "Traceback" not in house.log.read_text(), house.said()
    finally:
        house.close()


@pytest.fixture
async def client(tough: Tough) -> AsyncIterator[FarmClient]:
    """A client of the farm that outlives everything."""
    async with tough.house.client() as client:
        yield client


@pytest.fixture
def house(tmp_path: Path, chromium_executable: str) -> Iterator[House]:
    """An empty house of the test's own."""
    house = House(root=tmp_path)
    try:
        yield house
    finally:
        house.close()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with opened() as place:
        yield place
