"""Farms and agents as processes of their own, and every process they have started."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from farm.sdk import FarmClient
from tests.e2e.processes import ROOT, eventually

START_S = 60.0
AGENT_TOKEN = "a-token-that-only-these-tests-know"
SETTINGS = {
    "FARM_LINK__WINDOW_S": "3",
    "FARM_LINK__HEARTBEAT_INTERVAL_S": "0.5",
    "FARM_JOBS__RETRY_INITIAL_S": "0.1",
    "FARM_JOBS__RETRY_MAX_S": "0.2",
    "AGENT_SLOTS": "1",
}
"""Short clocks and one slot."""
_NEVER_DIALLED_FROM = 20_000, 32_000
"""Linux dials from ports above these."""

Processes = set[psutil.Process]


@dataclass(slots=True, kw_only=True)
class House:
    """One data directory, and the processes that run on it; `close` leaves nothing of them.

    Browsers are known by the temporary directory of their agent, which lies in the house.
    """

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around the start of each process."""
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _seen: Processes = field(default_factory=set)

    @property
    def data_dir(self) -> Path:
        return self.root / "data"

    @property
    def url(self) -> str:
        return str(json.loads((self.data_dir / "farm.json").read_text())["url"])

    @property
    def admin_token(self) -> str:
        return (self.data_dir / "admin.token").read_text().strip()

    def client(self) -> FarmClient:
        return FarmClient(self.url, self.admin_token, reconnect_s=20)

    # What is started

    async def up(self, *options: str, port: int = 0, agents: int = 1) -> subprocess.Popen[bytes]:
        """Run `farm up` and wait until its agents are there."""
        farm = await self._farm("up", "--port", str(port), "--agents", str(agents), *options)
        await self.present(*(f"agent-{number}" for number in range(1, agents + 1)))
        return farm

    async def serve(self, *options: str, port: int = 0) -> subprocess.Popen[bytes]:
        """Run `farm serve` and wait until it listens."""
        return await self._farm("serve", "--port", str(port), *options)

    async def _farm(self, *arguments: str) -> subprocess.Popen[bytes]:
        (self.data_dir / "farm.json").unlink(missing_ok=True)  # that of one that was killed
        command = ("farm.cli", *arguments, "--data-dir", str(self.data_dir))
        farm = self.start(*command, env={"FARM_AGENT_TOKEN": AGENT_TOKEN})
        file = self.data_dir / "farm.json"
        await eventually(lambda: file.exists() or farm.poll() is not None, START_S)
        assert farm.poll() is None, self.said()
        return farm

    async def agent(
        self, client_id: str, *, of: "House | None" = None, **settings: str
    ) -> subprocess.Popen[bytes]:
        """Run a lone `farm-agent`, of this farm or of that in another house, until it is there."""
        farm = of or self
        env = {"FARM_URL": farm.url, "AGENT_CLIENT_ID": client_id, **settings}
        token_file = self.root / "agent.token"
        token_file.write_text(AGENT_TOKEN)
        agent = self.start(
            "agent.cli", "run", env={"AGENT_TOKEN_FILE": str(token_file), **env}, farm=False
        )
        await farm.present(client_id)
        return agent

    def start(
        self, *command: str, env: Mapping[str, str], farm: bool = True
    ) -> subprocess.Popen[bytes]:
        """Run a module as a process group of its own; its words go to the house's log."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("FARM_", "AGENT_"))}
        settings = {
            k: v
            for k, v in {**SETTINGS, **self.settings}.items()
            if farm or not k.startswith("FARM_")
        }
        self.temporary.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as said, self.within():
            started = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=self.root,
                env={
                    **ours,
                    "PYTHONPATH": str(ROOT),
                    "TMPDIR": str(self.temporary),
                    **settings,
                    **env,
                },
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._started.append(started)
        return started

    async def present(self, *client_ids: str) -> None:
        """Wait until these agents are connected."""
        async with asyncio.timeout(START_S), self.client() as client:
            while not set(client_ids) <= {a.client_id for a in await client.agents() if a.present}:
                await asyncio.sleep(0.05)

    # What is there

    @property
    def log(self) -> Path:
        return self.root / "said.log"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def said(self) -> str:
        """The end of what the processes have said."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])

    def chromium(self) -> Processes:
        """Every process of a browser or its driver: those seen before that live on, and new ones.

        A driver or browser has a temporary directory below that of the house. Chromium's own
        children overwrite their environment, so theirs are found by their parents.
        """
        found: Processes = set()
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if one.environ().get("TMPDIR", "").startswith(f"{self.temporary}/"):
                    found |= {one, *one.children(recursive=True)}
        self._seen = {one for one in self._seen | found if lives(one)}
        return set(self._seen)

    def signal_all(self, number: signal.Signals) -> None:
        for started in self._started:
            if started.poll() is None:
                started.send_signal(number)

    def close(self) -> None:
        """Kill whatever still runs."""
        left = self.chromium()
        for started in self._started:
            with contextlib.suppress(psutil.NoSuchProcess):
                left |= set(psutil.Process(started.pid).children(recursive=True))
            started.kill()
            started.wait()
        for one in left | self.chromium():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def lives(one: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    return False


def living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if lives(one)]


def agents_of(farm: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The agents that `farm up` has started."""
    return [
        one
        for one in psutil.Process(farm.pid).children()
        if lives(one) and "agent.cli" in _line(one)
    ]


def driver_of(agent: psutil.Process) -> psutil.Process:
    """Playwright's driver below an agent."""
    return next(one for one in agent.children() if lives(one) and "run-driver" in _line(one))


def browser_of(agent: psutil.Process) -> psutil.Process:
    """The browser below an agent, not what may have started it nor what it has started."""
    below = driver_of(agent).children(recursive=True)
    return next(one for one in below if lives(one) and _is_browser(one))


def _is_browser(one: psutil.Process) -> bool:
    line = _line(one)
    return any(a.startswith("--user-data-dir") for a in line) and not any(
        a.startswith("--type=") or a.endswith("/sh") for a in line
    )


def _line(one: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return one.cmdline()
    return []


def free_port() -> int:
    """A port that nobody listens on now; a farm that is started again needs the same one.

    It is none of those that the system gives to whoever dials: one of them would be taken by any
    connection in the moment in which a farm that is started again does not listen.
    """
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", random.randrange(*_NEVER_DIALLED_FROM)))
            return int(probe.getsockname()[1])
