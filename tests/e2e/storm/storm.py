"""Coordinators, agents, and what they share, while one thing after another is struck."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import aiohttp

from farm.protocol.resources import AgentView
from farm.sdk import FarmClient
from farm.sdk.errors import FarmApiError, FarmClientError, FarmUnreachableError
from tests.e2e.faults.house import AGENT_TOKEN, House, free_port
from tests.e2e.processes import ROOT
from tests.e2e.storm.cable import Cable
from tests.e2e.storm.schedule import Blow, Strike, schedule
from tests.e2e.storm.verdict import ONCE, flaws, impossible
from tests.simulated.agent import SIM, Sim
from tests.simulated.pages import Pace
from tests.simulated.site import read

AGENTS = 6
SLOTS = 4
PACE = Pace(step_s=(0.0, 0.4), fails=0.02, breaks=0.02)
_SETTINGS = {"FARM_JOBS__MAX_FREE_LOSSES": "50", "FARM_JOBS__ASSIGNMENT_TIMEOUT_S": "20"}
_STILL_S = 120.0
"""So long after the storm everything must be at rest."""


@dataclass(slots=True, kw_only=True)
class Target:
    """A process that can be struck, and the cables that lead to it."""

    start: Callable[[], subprocess.Popen[bytes]]
    cables: Sequence[Cable]
    process: subprocess.Popen[bytes] | None = None

    def strike(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL if self.process is not None:
                self.process.kill()
                self.process.wait()
            case Blow.PAUSE if self.process is not None:
                self.process.send_signal(signal.SIGSTOP)
            case Blow.CUT:
                for cable in self.cables:
                    cable.cut()
            case Blow.STALL:
                for cable in self.cables:
                    cable.stall()
            case _:
                raise AssertionError("it is not running")

    def restore(self, blow: Blow) -> None:
        match blow:
            case Blow.KILL:
                self.process = self.start()
            case Blow.PAUSE if self.process is not None:
                self.process.send_signal(signal.SIGCONT)
            case _:
                for cable in self.cables:
                    cable.mend()


@dataclass(slots=True, kw_only=True)
class Storm:
    """One run; `flaws` is what is wrong at its end."""

    seed: int
    jobs: int
    lasts_s: float
    every_s: float = 1.5
    longest_s: float = 6.0
    say: Callable[[str], None] = print
    shared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    flaws: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    _targets: dict[str, Target] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    async def run(self, root: Path) -> None:
        """Begin, strike, restore, and judge."""
        async with AsyncExitStack() as stack:
            house = await self._house(root, stack)
            site, log = await self._site(root, stack)
            await self._agents(root, site, house, stack)
            strikes = schedule(
                self.seed,
                sorted(self._targets),
                lasts_s=self.lasts_s,
                every_s=self.every_s,
                longest_s=self.longest_s,
            )
            self.say(f"seed {self.seed}: {self.jobs} jobs")
            for strike in strikes:
                self.say(str(strike))
            watching = asyncio.create_task(self._watch(house), name="watch")
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._submit(house), name="submit")
                    for strike in strikes:
                        group.create_task(self._strike(strike), name=str(strike))
                await self._judge(house, log)
            finally:
                watching.cancel()

    # What there is

    async def _house(self, root: Path, stack: AsyncExitStack) -> House:
        port = free_port()
        house = House(root=root, settings=_SETTINGS)
        stack.callback(house.close)
        process = await house.serve(port=port)
        command = ("farm.cli", "serve", "--port", str(port), "--data-dir", str(house.data_dir))
        self._targets["coordinator"] = Target(
            start=lambda: house.start(*command, env={"FARM_AGENT_TOKEN": AGENT_TOKEN}),
            cables=[await stack.enter_async_context(Cable(port).laid()) for _ in range(AGENTS)],
            process=process,
        )
        return house

    async def _site(self, root: Path, stack: AsyncExitStack) -> tuple[str, Path]:
        log = root / "effects.jsonl"
        command = (sys.executable, "-m", "tests.simulated.site", str(log))
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        stack.push_async_callback(_end, process)
        assert process.stdout is not None
        return (await process.stdout.readline()).decode().strip(), log

    async def _agents(self, root: Path, site: str, house: House, stack: AsyncExitStack) -> None:
        for number, cable in enumerate(self._targets["coordinator"].cables, start=1):
            sim = Sim(
                client_id=f"sim-{number}",
                urls=(f"http://127.0.0.1:{cable.port}",),
                token=AGENT_TOKEN,
                slots=SLOTS,
                site=site,
                seed=self.seed,
                pace=PACE,
            )
            target = Target(start=_starter(house, sim), cables=[cable])
            target.process = target.start()
            self._targets[sim.client_id] = target
        await house.present(*(f"sim-{number}" for number in range(1, AGENTS + 1)))

    # The storm

    async def _strike(self, strike: Strike) -> None:
        target = self._targets[strike.target]
        await asyncio.sleep(strike.at_s)
        target.strike(strike.blow)
        await asyncio.sleep(strike.for_s)
        target.restore(strike.blow)

    async def _submit(self, house: House) -> None:
        """Submit everything over the time of the storm, each job until it is accepted."""
        async with house.client() as client:
            for number in range(self.jobs):
                body = a_job(number)
                while not await _accepted(client, body):
                    await asyncio.sleep(0.2)
                await asyncio.sleep(self.lasts_s / self.jobs * 0.8)

    async def _watch(self, house: House) -> None:
        """Look for what can never be, as long as there is something to see."""
        async with house.client() as client, _metrics(house) as metrics:
            while True:
                with suppress(FarmClientError, aiohttp.ClientError, OSError, TimeoutError):
                    async with asyncio.timeout(2):
                        self._seen |= set(impossible(await client.agents(), await metrics()))
                await asyncio.sleep(0.3)

    # The end

    async def _judge(self, house: House, log: Path) -> None:
        async with house.client() as client:
            try:
                async with asyncio.timeout(_STILL_S):
                    await _rest(client)
            except TimeoutError:
                self.flaws.append(f"not everything is at rest after {_STILL_S} s")
            jobs = [await client.job(job_id) for job_id in await _all(client)]
            agents = await _idle(client)
        self.ends = Counter(str(job.state) for job in jobs)
        self.attempts = sum(len(job.history) for job in jobs)
        self.flaws += [*flaws(jobs, self.jobs, read(log), agents), *sorted(self._seen)]
        if self.flaws:
            self.flaws.append(house.said())


def a_job(number: int) -> dict[str, object]:
    """Two of three must not do anything twice; all the others may."""
    once = number % 3 != 0
    return {
        "name": f"{ONCE if once else 'often'}-{number}",
        "steps": [
            {"goto": "https://example.com/"},
            {"click": {"selector": "#order", "effect": "once" if once else "idempotent"}},
            {"wait_for": "#thanks"},
        ],
        "retry": {"max_attempts": 10},
    }


async def _accepted(client: FarmClient, body: Mapping[str, object]) -> bool:
    try:
        async with asyncio.timeout(5):
            await client.submit(body, idempotency_key=str(body["name"]))
    except (FarmUnreachableError, TimeoutError):
        return False
    except FarmApiError as error:
        if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return False
    return True


def _starter(house: House, sim: Sim) -> Callable[[], subprocess.Popen[bytes]]:
    command = ("tests.simulated.agent", SIM.dump_json(sim).decode())
    return lambda: house.start(*command, env={}, farm=False)


async def _rest(client: FarmClient) -> None:
    for state in ("queued", "running", "cancelling"):
        while (await client.jobs(state, limit=1)).items:
            await asyncio.sleep(0.3)
    for state in ("queued", "running", "cancelling"):
        if (await client.jobs(state, limit=1)).items:
            await _rest(client)


async def _all(client: FarmClient) -> list[str]:
    found, cursor = [], None
    while True:
        page = await client.jobs(limit=100, cursor=cursor)
        found += [job.id for job in page.items]
        if (cursor := page.next_cursor) is None:
            return found


async def _idle(client: FarmClient) -> tuple[AgentView, ...]:
    """The agents once what they held has been given back, or after long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(30):
            while any(agent.used_slots for agent in await client.agents()):
                await asyncio.sleep(0.3)
    return await client.agents()


@asynccontextmanager
async def _metrics(house: House) -> AsyncIterator[Callable[[], "asyncio.Future[str]"]]:
    headers = {"Authorization": f"Bearer {house.admin_token}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def get() -> str:
            async with session.get(f"{house.url}/metrics") as answer:
                return await answer.text()

        yield lambda: asyncio.ensure_future(get())


async def _end(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.wait()
