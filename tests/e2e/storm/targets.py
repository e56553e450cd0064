"""What a storm can strike: coordinators, what they share, and agents."""

import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from farm.stores.keyring import new_key
from tests.e2e.faults.house import AGENT_TOKEN, House, free_port
from tests.e2e.storm.cable import Cable
from tests.e2e.storm.schedule import Blow
from tests.simulated.agent import SIM, Sim
from tests.stores import postgres_server, redis_server

_SETTINGS = {"FARM_JOBS__MAX_FREE_LOSSES": "50", "FARM_JOBS__ASSIGNMENT_TIMEOUT_S": "20"}
_LEASE_S = 2
_POSTGRES_SOCKET = ".s.PGSQL.5432"


class Server(Protocol):
    """Something that runs."""

    def start(self) -> None:
        """Start it, again after a kill."""
        ...

    def kill(self) -> None:
        """End it with -9."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Stop it, or let it go on."""
        ...


@dataclass(slots=True, kw_only=True)
class Target:
    """A server that can be struck, and the cables that lead to it; or cables alone."""

    server: Server | None = None
    cables: list[Cable] = field(default_factory=list)

    @property
    def blows(self) -> list[Blow]:
        """What can be done to it."""
        server = [] if self.server is None else [Blow.KILL, Blow.PAUSE]
        return [*server, *([Blow.CUT, Blow.STALL] if self.cables else [])]

    def strike(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL if self.server is not None:
                self.server.kill()
            case Blow.PAUSE if self.server is not None:
                self.server.signal(signal.SIGSTOP)
            case Blow.CUT:
                for cable in self.cables:
                    cable.cut()
            case _:
                for cable in self.cables:
                    cable.stall()

    def restore(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL if self.server is not None:
                self.server.start()
            case Blow.PAUSE if self.server is not None:
                self.server.signal(signal.SIGCONT)
            case _:
                for cable in self.cables:
                    cable.mend()


@dataclass(slots=True)
class Process:
    """A process of a house, as often as it is started."""

    begin: Callable[[], subprocess.Popen[bytes]]
    running: subprocess.Popen[bytes]

    def start(self) -> None:
        self.running = self.begin()

    def kill(self) -> None:
        self.running.kill()
        self.running.wait()

    def signal(self, number: signal.Signals) -> None:
        self.running.send_signal(number)


@dataclass(slots=True)
class Redis:
    """One that has forgotten everything when it is started again."""

    folder: Path
    _open: ExitStack = field(default_factory=ExitStack)
    _running: "subprocess.Popen[bytes] | None" = None

    @property
    def socket(self) -> Path:
        return self.folder / "redis.sock"

    def start(self) -> None:
        _, self._running = self._open.enter_context(redis_server.process(self.folder))

    def kill(self) -> None:
        self._open.close()

    def signal(self, number: signal.Signals) -> None:
        assert self._running is not None
        self._running.send_signal(number)


@dataclass(slots=True, kw_only=True)
class Coordinators:
    """Those that share everything; or one that has its agents and its ledger to itself."""

    root: Path
    houses: list[House] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    targets: dict[str, Target] = field(default_factory=dict)

    async def begin(self, count: int, stack: AsyncExitStack) -> None:
        shared = await self._shared(count, stack) if count > 1 else [{}]
        for number, settings in enumerate(shared, start=1):
            root = self.root / f"coordinator-{number}"
            root.mkdir()
            house = House(root=root, settings={**_SETTINGS, **settings})
            stack.callback(house.close)
            port = free_port()
            process = Process(_coordinator(house, port), await house.serve(port=port))
            self.houses.append(house)
            self.ports.append(port)
            self.targets[f"coordinator-{number}"] = Target(server=process)

    async def _shared(self, count: int, stack: AsyncExitStack) -> list[Mapping[str, str]]:
        """Start what they share; how each of them is told of it."""
        redis = Redis(self.root)
        redis.start()
        stack.callback(redis.kill)
        postgres = stack.enter_context(postgres_server.running())
        postgres.sql("CREATE DATABASE farm")
        socket = postgres.folder / _POSTGRES_SOCKET
        to_redis = [
            await stack.enter_async_context(Cable(redis.socket).laid()) for _ in range(count)
        ]
        to_ledger = [await stack.enter_async_context(Cable(socket).laid()) for _ in range(count)]
        self.targets["redis"] = Target(server=redis, cables=to_redis)
        self.targets["postgres"] = Target(server=postgres, cables=to_ledger)
        for number, cables in enumerate(zip(to_redis, to_ledger, strict=True), start=1):
            # Alone of the coordinators it is away from what all share.
            self.targets[f"network-{number}"] = Target(cables=list(cables))
        common = {
            "FARM_LEDGER__LEASE_S": str(_LEASE_S),
            "FARM_ARTIFACTS__DIR": str(self.root / "files"),
            "FARM_IDENTITY_KEY": new_key(),
        }
        return [
            {
                **common,
                "FARM_REDIS__URL": f"redis://127.0.0.1:{one.port}",
                "FARM_LEDGER__URL": f"postgresql://postgres@127.0.0.1:{other.port}/farm",
            }
            for one, other in zip(to_redis, to_ledger, strict=True)
        ]


def agent(house: House, sim: Sim, cables: list[Cable]) -> Target:
    """Start a simulated agent that goes by these cables."""
    command = ("tests.simulated.agent", SIM.dump_json(sim).decode())

    def begin() -> subprocess.Popen[bytes]:
        return house.start(*command, env={}, farm=False)

    return Target(server=Process(begin, begin()), cables=cables)


def _coordinator(house: House, port: int) -> Callable[[], subprocess.Popen[bytes]]:
    command = ("farm.cli", "serve", "--port", str(port), "--data-dir", str(house.data_dir))
    return lambda: house.start(*command, env={"FARM_AGENT_TOKEN": AGENT_TOKEN})
