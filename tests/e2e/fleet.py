"""Several `farm serve` over one Redis, and mostly one PostgreSQL, for a whole module of tests."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farm.sdk import FarmClient
from farm.stores.keyring import new_key
from tests.e2e.faults.house import House, free_port
from tests.e2e.processes import eventually
from tests.stores import redis_server
from tests.stores.conftest import Databases

LEASE_S = 2
NAMES = ("one", "two", "three")


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Coordinators that share everything; those that a test has killed are started again."""

    houses: list[House]
    ports: list[int] = field(init=False)
    processes: "list[subprocess.Popen[bytes] | None]" = field(init=False)

    def __post_init__(self) -> None:
        self.ports = [free_port() for _ in self.houses]
        self.processes = [None for _ in self.houses]

    @property
    def admin_token(self) -> str:
        return self.houses[0].admin_token

    def client(self, url: str) -> FarmClient:
        """A client of whoever is at a URL, on connections of its own."""
        return FarmClient(url, self.admin_token, reconnect_s=20)

    async def whole(self) -> None:
        """Start what does not run."""
        async with asyncio.TaskGroup() as group:
            for number, process in enumerate(self.processes):
                if process is None or process.poll() is not None:
                    group.create_task(self.start(number))

    async def start(self, number: int) -> None:
        """Start one of them, where it was."""
        self.processes[number] = await self.houses[number].serve(port=self.ports[number])

    def someone(self) -> House:
        """One of those that run."""
        running = zip(self.houses, self.processes, strict=True)
        return next(house for house, one in running if one is not None and one.poll() is None)

    def process(self, number: int) -> subprocess.Popen[bytes]:
        found = self.processes[number]
        assert found is not None
        return found

    def kill(self, number: int) -> None:
        """Let one of them have had no time for anything."""
        self.process(number).send_signal(signal.SIGKILL)
        self.process(number).wait()

    def said(self, event: str, **members: str) -> list[tuple[str, int]]:
        """When who of them has logged what, in the order of time."""
        return sorted(
            (str(line["timestamp"]), number)
            for number, house in enumerate(self.houses)
            for line in _lines(house.log)
            if line.get("event") == event
            and all(line.get(key) == value for key, value in members.items())
        )

    async def says(self, event: str, after: int, **members: str) -> None:
        """Wait until it is logged once more than so often."""
        await eventually(lambda: len(self.said(event, **members)) > after, 30)

    def let_in(self, client_id: str) -> list[int]:
        """Who has let an agent in, the last one last."""
        return [number for _, number in self.said("agent.welcome", client_id=client_id)]

    async def is_let_in(self, client_id: str, times: int = 1) -> int:
        """Wait until an agent has been let in so often; tell by whom it was last."""
        await eventually(lambda: len(self.let_in(client_id)) >= times, 30)
        return self.let_in(client_id)[-1]


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        if line.startswith("{") and line.endswith("}"):
            yield json.loads(line)


def fleet_of(
    folder: Path, settings: Mapping[str, str], names: Sequence[str] = NAMES
) -> Iterator[Fleet]:
    """Run coordinators with the same settings, as a fixture does."""
    fleet = Fleet(houses=[House(root=folder / name, settings=settings) for name in names])
    for house in fleet.houses:
        house.root.mkdir()
    try:
        in_thread(fleet.whole())
        yield fleet
    finally:
        for house in fleet.houses:
            house.close()


def sharing_all(redis: str, ledger: str) -> dict[str, str]:
    """The settings of coordinators that share everything; where files are is not among them."""
    return {
        "FARM_REDIS__URL": redis,
        "FARM_LEDGER__URL": ledger,
        "FARM_LEDGER__LEASE_S": str(LEASE_S),
        "FARM_IDENTITY_KEY": new_key(),
        "FARM_EGRESS_ALLOW": "127.0.0.1",
    }


def fleet_over_one_ledger(folder: Path, postgres: Databases) -> Iterator[Fleet]:
    """Run three that share everything, as a fixture does."""
    with redis_server.running(folder) as redis:
        files = {"FARM_ARTIFACTS__DIR": str(folder / "files")}
        yield from fleet_of(folder, {**sharing_all(redis, postgres.new()), **files})


def in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Do something asynchronous in a fixture; another plugin's loop may be running here."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()
