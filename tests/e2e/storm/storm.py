"""Coordinators, agents, and what they share, while one thing after another is struck."""

import asyncio
import itertools
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import aiohttp

from farm.protocol.resources import AgentView
from farm.sdk import FarmClient
from farm.sdk.errors import FarmApiError, FarmClientError, FarmUnreachableError
from tests.cable import Cable
from tests.e2e.faults.house import AGENT_TOKEN, House
from tests.e2e.processes import ROOT
from tests.e2e.storm.network import ImpossibleError, Loopback, Segment, apart
from tests.e2e.storm.schedule import Blow, Strike, kind_of, schedule
from tests.e2e.storm.targets import Coordinators, Target, agent
from tests.e2e.storm.verdict import ONCE, flaws, impossible, left_over
from tests.simulated.agent import Sim
from tests.simulated.pages import Pace
from tests.simulated.site import read

AGENTS = 6
SLOTS = 4
PACE = Pace(step_s=(0.0, 0.4), fails=0.02, breaks=0.02)
_GIVEN_BACK_S = 15.0
"""So long after it is at rest, what was reserved by who is no more has come back with its lease."""
_STILL_S = 60.0
"""After the storm a job gets further within this, until all are at rest."""
_SUBMITTED_AT_ONCE = 8


@dataclass(slots=True, kw_only=True)
class Storm:
    """One run; `flaws` is what is wrong at its end."""

    seed: int
    jobs: int
    every: float = 12.0
    """The jobs from one strike to the next, on average."""
    pause_s: float = 0.05
    """The time from one job to the next, at least."""
    longest_s: float = 6.0
    say: Callable[[str], None] = print
    coordinators: int = 1
    """One has its agents and its ledger to itself; several share Redis and PostgreSQL."""
    apart: bool = True
    """Whether packets vanish, too, where the machine allows it."""
    flaws: list[str] = field(default_factory=list)
    struck: Counter[tuple[str, Blow]] = field(default_factory=Counter)
    """How often what kind of target was struck by what."""
    ends: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    _seen: set[str] = field(default_factory=set)

    async def run(self, root: Path) -> None:
        """Begin, strike, restore, and judge."""
        farms = Coordinators(root=root)
        try:
            await self._run(root, farms)
        finally:
            self.flaws += [f"{line} is left over" for line in left_over(farms.folders)]

    async def _run(self, root: Path, farms: Coordinators) -> None:
        async with AsyncExitStack() as stack:
            network = farms.network = self._network(stack)
            await farms.begin(self.coordinators, stack)
            site, log = await _site(root, network.middle(Segment.WORLD), stack)
            targets = await self._agents(site, farms, stack) | farms.targets
            strikes = schedule(
                self.seed,
                {name: target.blows for name, target in targets.items()},
                jobs=self.jobs,
                every=self.every,
                longest_s=self.longest_s,
            )
            self.say(f"seed {self.seed}: {self.jobs} jobs on {self.coordinators} coordinators")
            for strike in strikes:
                self.say(str(strike))
                self.struck[kind_of(strike.target), strike.blow] += 1
            async with asyncio.TaskGroup() as watching:
                seeing = [watching.create_task(self._watch(house)) for house in farms.houses]
                seeing += [watching.create_task(target.supervise()) for target in targets.values()]
                await self._submit(farms.houses, targets, strikes)
                self.say("all are submitted, and everybody is whole")
                self.flaws += [
                    f"{name} has ended by itself" for name, target in targets.items() if target.ends
                ]
                await self._judge(farms.houses, log)
                for task in seeing:
                    task.cancel()

    def _network(self, stack: AsyncExitStack) -> Loopback:
        if not self.apart:
            return Loopback()
        try:
            return stack.enter_context(apart())
        except ImpossibleError as why:
            self.say(f"no packets vanish: {why}")
            return Loopback()

    async def _agents(
        self, site: str, farms: Coordinators, stack: AsyncExitStack
    ) -> dict[str, Target]:
        """Start the agents; each has a cable of its own to every coordinator."""
        found = {}
        at = farms.network.middle(Segment.FRONT)
        for number in range(AGENTS):
            cables = [
                await stack.enter_async_context(Cable(to, at=at).laid()) for to in farms.addresses
            ]
            for coordinator, cable in enumerate(cables, start=1):
                farms.targets[f"coordinator-{coordinator}"].cables.append(cable)
            # They begin with another coordinator each, where there are several.
            urls = [f"http://{at}:{cable.port}" for cable in cables]
            first = number % len(urls)
            sim = Sim(
                client_id=f"sim-{number + 1}",
                urls=(*urls[first:], *urls[:first]),
                token=AGENT_TOKEN,
                slots=SLOTS,
                site=site,
                seed=self.seed,
                pace=PACE,
            )
            place = farms.network.place(Segment.FRONT, Segment.WORLD)
            found[sim.client_id] = agent(farms.root, sim, place, cables, stack)
        await farms.houses[0].present(*found)
        return found

    # The storm

    async def _submit(
        self, houses: Sequence[House], targets: Mapping[str, Target], strikes: Iterable[Strike]
    ) -> None:
        """Submit everything, each job until it is accepted, and strike meanwhile."""
        room, strikes = asyncio.Semaphore(_SUBMITTED_AT_ONCE), deque(strikes)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(house.client()) for house in houses]
            group = await stack.enter_async_context(asyncio.TaskGroup())
            for number in range(self.jobs):
                while strikes and strikes[0].after <= number:
                    strike = strikes.popleft()
                    group.create_task(_strike(targets[strike.target], strike), name=str(strike))
                await room.acquire()
                turns = itertools.cycle(clients[number % len(clients) :] + clients)
                group.create_task(_submit(turns, a_job(number), room), name=f"job {number}")
                await asyncio.sleep(self.pause_s)

    async def _watch(self, house: House) -> None:
        """Look for what can never be, as long as there is something to see."""
        async with house.client() as client, _metrics(house) as metrics:
            while True:
                with suppress(FarmClientError, aiohttp.ClientError, OSError, TimeoutError):
                    async with asyncio.timeout(2):
                        self._seen |= set(impossible(await client.agents(), await metrics()))
                await asyncio.sleep(0.3)

    # The end

    async def _judge(self, houses: Sequence[House], log: Path) -> None:
        async with houses[0].client() as client:
            if not await _rest(client):
                self.flaws.append(f"not everything is at rest, and for {_STILL_S} s nothing moved")
            self.say("no job is on its way any more")
            jobs = [await client.job(job_id) for job_id in await _all(client)]
            agents = await _idle(client)
            self.say("what was held has been given back")
        self.ends = Counter(str(job.state) for job in jobs)
        self.failures = Counter(job.failure.reason for job in jobs if job.failure is not None)
        self.attempts = sum(len(job.history) for job in jobs)
        self.flaws += [*flaws(jobs, self.jobs, read(log), agents), *sorted(self._seen)]
        if self.flaws:
            self.flaws += [house.said() for house in houses]


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


async def _submit(
    turns: Iterator[FarmClient], body: Mapping[str, object], room: asyncio.Semaphore
) -> None:
    try:
        while not await _accepted(next(turns), body):
            await asyncio.sleep(0.2)
    finally:
        room.release()


async def _strike(target: Target, strike: Strike) -> None:
    async with target.whole:
        await target.strike(strike.blow)
        await asyncio.sleep(strike.for_s)
        await target.restore(strike.blow)


async def _site(root: Path, host: str, stack: AsyncExitStack) -> tuple[str, Path]:
    log = root / "effects.jsonl"
    command = (sys.executable, "-m", "tests.simulated.site", str(log), host)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    stack.push_async_callback(_end, process)
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip(), log


async def _rest(client: FarmClient) -> bool:
    """Wait until every job has ended; False if none has got any further for long."""
    now = asyncio.get_running_loop().time
    before: list[tuple[str, int]] | None = None
    since = now()
    # A job may be between two states, and so in none of the lists, once.
    while (left := await _unended(client)) != [] or (left := await _unended(client)) != []:
        if left != before:
            before, since = left, now()
        elif now() - since > _STILL_S:
            return False
        await asyncio.sleep(0.3)
    return True


async def _unended(client: FarmClient) -> list[tuple[str, int]] | None:
    """The jobs that are on their way; None where nobody says, as one that starts does not."""
    with suppress(FarmClientError):
        return [
            (job.id, job.attempts)
            for state in ("queued", "running", "cancelling")
            for job in (await client.jobs(state, limit=100)).items
        ]
    return None


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
        async with asyncio.timeout(_GIVEN_BACK_S):
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
