"""What a storm can strike: coordinators, what they share, and agents."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, assert_never

from farm.stores.keyring import new_key
from tests.cable import Cable
from tests.e2e.faults.house import AGENT_TOKEN, House, free_port
from tests.e2e.storm.network import Loopback, Place, Plug, Segment
from tests.e2e.storm.schedule import Blow
from tests.simulated.agent import SIM, Sim
from tests.stores import postgres_server, redis_server

_SETTINGS = {
    "FARM_JOBS__MAX_FREE_LOSSES": "50",
    "FARM_JOBS__ASSIGNMENT_TIMEOUT_S": "20",
    "FARM_JOBS__PROVISION_TIMEOUT_S": "5",
}
_LEASE_S = 2
_POSTGRES_SOCKET = ".s.PGSQL.5432"
_ON_A_CABLE = {Blow.CUT: Cable.cut, Blow.STALL: Cable.stall, Blow.LOSE: Cable.lose}


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
    """A server that can be struck, and what leads to it; or that alone."""

    server: Server | None = None
    cables: list[Cable] = field(default_factory=list)
    plugs: list[Plug] = field(default_factory=list)
    whole: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is not."""

    @property
    def blows(self) -> list[Blow]:
        """What can be done to it."""
        server = [] if self.server is None else [Blow.KILL, Blow.PAUSE]
        cables = [Blow.CUT, Blow.STALL, Blow.LOSE] if self.cables else []
        return [*server, *cables, *([Blow.VANISH] if self.plugs else [])]

    async def strike(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL:
                await _to_its_end(self._server.kill)
            case Blow.PAUSE:
                self._server.signal(signal.SIGSTOP)
            case Blow.CUT | Blow.STALL | Blow.LOSE:
                for cable in self.cables:
                    _ON_A_CABLE[blow](cable)
            case Blow.VANISH:
                for plug in self.plugs:
                    plug.pull()
            case _:
                assert_never(blow)

    async def restore(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL:
                await _to_its_end(self._server.start)
            case Blow.PAUSE:
                self._server.signal(signal.SIGCONT)
            case Blow.CUT | Blow.STALL | Blow.LOSE:
                for cable in self.cables:
                    cable.mend()
            case Blow.VANISH:
                for plug in self.plugs:
                    plug.push()
            case _:
                assert_never(blow)

    async def supervise(self) -> None:
        """Start it again when it has ended by itself, until cancelled."""
        while isinstance(self.server, Process):
            async with self.whole:
                self.server.revive()
            await asyncio.sleep(0.5)

    @property
    def ends(self) -> int:
        """How often it has ended though nobody has killed it."""
        return self.server.ends if isinstance(self.server, Process) else 0

    @property
    def _server(self) -> Server:
        assert self.server is not None
        return self.server


async def _to_its_end(work: Callable[[], None]) -> None:
    """Do what takes a while; a cancellation waits for it, so that what it starts is known then."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    finally:
        await asyncio.wait([working])


@dataclass(slots=True)
class Process:
    """A process of a house, as often as it is started."""

    begin: Callable[[], subprocess.Popen[bytes]]
    running: subprocess.Popen[bytes]
    log: Path
    up: bytes = b""
    """What its log says once it is up; one that does not come up may end."""
    ends: int = 0
    """So often it has ended by itself while it was up."""
    _since: int = 0

    def start(self) -> None:
        self._since = self.log.stat().st_size
        self.running = self.begin()

    def kill(self) -> None:
        self._has_ended()
        self.running.kill()
        self.running.wait()

    def revive(self) -> None:
        """Start it again if it has ended, as whatever runs it would."""
        if self._has_ended():
            self.start()

    def _has_ended(self) -> bool:
        if self.running.poll() is None:
            return False
        self.ends += self.up in self.log.read_bytes()[self._since :]
        return True

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
    network: Loopback = field(default_factory=Loopback)
    folders: list[Path] = field(default_factory=list)
    """What is started names one of them."""
    houses: list[House] = field(default_factory=list)
    addresses: list[tuple[str, int]] = field(default_factory=list)
    targets: dict[str, Target] = field(default_factory=dict)

    async def begin(self, count: int, stack: AsyncExitStack) -> None:
        self.folders.append(self.root)
        shared = await self._shared(count, stack) if count > 1 else [{}]
        async with asyncio.TaskGroup() as group:
            for number, settings in enumerate(shared, start=1):
                place = self.network.place(Segment.FRONT, Segment.BACK)
                host, port = place.address(Segment.FRONT), free_port()
                house = House(
                    root=self.root / f"coordinator-{number}",
                    settings={**_SETTINGS, **settings, **self._listening(host)},
                    within=place.inside,
                )
                house.root.mkdir()
                stack.callback(house.close)
                self.houses.append(house)
                self.addresses.append((host, port))
                self._targets_of(number, place)
                group.create_task(self._serve(number, house, port), name=f"coordinator {number}")

    def _listening(self, host: str) -> Mapping[str, str]:
        return {"FARM_HOST": host, "FARM_ALLOWED_HOSTS": self.network.middle(Segment.FRONT)}

    def _targets_of(self, number: int, place: Place) -> None:
        front, back = place.plugs.get(Segment.FRONT), place.plugs.get(Segment.BACK)
        self.targets[f"coordinator-{number}"] = Target(plugs=[] if front is None else [front])
        if (network := self.targets.get(f"network-{number}")) is not None and back is not None:
            network.plugs.append(back)

    async def _serve(self, number: int, house: House, port: int) -> None:
        running = await house.serve(port=port)
        process = Process(_coordinator(house, port), running, house.log, b'"farm.started"')
        self.targets[f"coordinator-{number}"].server = process

    async def _shared(self, count: int, stack: AsyncExitStack) -> list[Mapping[str, str]]:
        """Start what they share; how each of them is told of it."""
        redis = Redis(self.root)
        redis.start()
        stack.callback(redis.kill)
        postgres = stack.enter_context(postgres_server.running())
        self.folders.append(postgres.folder)
        postgres.sql("CREATE DATABASE farm")
        to_redis = await self._cables(redis.socket, count, stack)
        to_ledger = await self._cables(postgres.folder / _POSTGRES_SOCKET, count, stack)
        self.targets["redis"] = Target(server=redis, cables=to_redis)
        self.targets["postgres"] = Target(server=postgres, cables=to_ledger)
        for number, cables in enumerate(zip(to_redis, to_ledger, strict=True), start=1):
            # Alone of the coordinators it is away from what all share.
            self.targets[f"network-{number}"] = Target(cables=list(cables))
        host = self.network.middle(Segment.BACK)
        common = {
            "FARM_LEDGER__LEASE_S": str(_LEASE_S),
            "FARM_ARTIFACTS__DIR": str(self.root / "files"),
            "FARM_IDENTITY_KEY": new_key(),
        }
        return [
            {
                **common,
                "FARM_REDIS__URL": f"redis://{host}:{one.port}",
                "FARM_LEDGER__URL": f"postgresql://postgres@{host}:{other.port}/farm",
            }
            for one, other in zip(to_redis, to_ledger, strict=True)
        ]

    async def _cables(self, to: Path, count: int, stack: AsyncExitStack) -> list[Cable]:
        at = self.network.middle(Segment.BACK)
        return [
            await stack.enter_async_context(Cable(to, at=at, noticed_s=_LEASE_S).laid())
            for _ in range(count)
        ]


def agent(root: Path, sim: Sim, place: Place, cables: list[Cable], stack: AsyncExitStack) -> Target:
    """Start a simulated agent that goes by these cables."""
    house = House(root=root / sim.client_id, within=place.inside)
    house.root.mkdir()
    stack.callback(house.close)
    command = ("tests.simulated.agent", SIM.dump_json(sim).decode())

    def begin() -> subprocess.Popen[bytes]:
        return house.start(*command, env={}, farm=False)

    front = place.plugs.get(Segment.FRONT)
    return Target(
        server=Process(begin, begin(), house.log),
        cables=cables,
        plugs=[] if front is None else [front],
    )


def _coordinator(house: House, port: int) -> Callable[[], subprocess.Popen[bytes]]:
    command = ("farm.cli", "serve", "--port", str(port), "--data-dir", str(house.data_dir))
    return lambda: house.start(*command, env={"FARM_AGENT_TOKEN": AGENT_TOKEN})
