"""Many jobs on one agent of which parts are killed now and then; and what is left in the end."""

import asyncio
import contextlib
import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.benchmarks.processes import pss_mb
from tests.e2e.faults.house import START_S, House, agents_of, browser_of, driver_of
from tests.e2e.faults.place import opened
from tests.e2e.faults.watching import job, rested, submitted

WORKERS = 4
SLOTS = 2
VICTIMS = ("renderer", "driver", "browser", "agent")
_STEPS = (
    ({"goto": "SITE/products"}, {"extract": {"list": "a", "fields": {"to": "@href"}}}),
    ({"goto": "SITE/traces"}, {"wait_for": "#out"}),
    ({"goto": "SITE/popup"}, {"screenshot": "page.png"}),
    ({"goto": "SITE/slow?ms=150"}, {"html": "page.html"}),
    ({"goto": "SITE/dialog"}, {"assert": {"text": "no"}}),
)
"""Jobs of five kinds in turn: records, all that a page can leave behind, popups, files, dialogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What farm, agent and browser take together while nothing runs."""

    jobs: int
    pss_mb: float
    processes: int
    zombies: int
    descriptors: int
    files: int
    """In the temporary directory of the agent."""

    def __str__(self) -> str:
        return (
            f"{self.jobs:5d} jobs  {self.pss_mb:7.0f} MB PSS  {self.processes:3d} processes"
            f"  {self.zombies:2d} zombies  {self.descriptors:4d} descriptors  {self.files:4d} files"
        )


@dataclass(slots=True, kw_only=True)
class Soak:
    """One run; `samples` begin before the first kill and end after the last job."""

    seed: int
    jobs: int
    kills: int
    say: Callable[[str], None] = lambda _: None
    samples: list[Sample] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    attempts: int = 0

    async def run(self, root: Path) -> None:
        """Do all of it in a house of its own, of which nothing is left."""
        house = House(root=root, settings={"AGENT_SLOTS": str(SLOTS), "FARM_LINK__WINDOW_S": "3"})
        try:
            async with opened() as place:
                farm = await house.up("--allow", "127.0.0.1")
                async with house.client() as client:
                    await self._work(client, farm, house, place.url)
            farm.terminate()
            await asyncio.to_thread(farm.wait, 20)
        finally:
            house.close()

    async def _work(
        self, client: FarmClient, farm: subprocess.Popen[bytes], house: House, site: str
    ) -> None:
        warm = max(2 * len(_STEPS), self.jobs // 10)
        await self._portion(client, site, range(warm))
        await self._look(client, farm, house, warm)
        chance = random.Random(self.seed)
        # The last tenth is left alone, so that what is measured then has worked for a while, too.
        last = self.jobs - warm
        moments = sorted(chance.sample(range(warm, last), self.kills))
        order = [VICTIMS[n % len(VICTIMS)] for n in range(self.kills)]
        chance.shuffle(order)
        self.say(f"seed {self.seed}: " + ", ".join(map("{} at {}".format, order, moments)))
        begun = warm
        for moment, victim in zip(moments, order, strict=True):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._portion(client, site, range(begun, moment + WORKERS)))
                group.create_task(self._kill(client, farm, victim, moment))
            begun = max(begun, moment + WORKERS)
            if self.killed.total() % 5 == 0:
                await self._look(client, farm, house, begun)
        await self._portion(client, site, range(begun, self.jobs))
        await self._look(client, farm, house, self.jobs)

    async def _portion(self, client: FarmClient, site: str, numbers: range) -> None:
        left = iter(numbers)
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._one_after_another(client, site, left))

    async def _one_after_another(self, client: FarmClient, site: str, left: Iterator[int]) -> None:
        for number in left:
            steps = json.loads(json.dumps(_STEPS[number % len(_STEPS)]).replace("SITE", site))
            body = job(f"soak {number}", *steps, retry={"max_attempts": 6})
            done: JobDetail = await rested(client, await submitted(client, body), 120)
            self.ends[done.state] += 1
            self.attempts += len(done.history)
            if done.failure is not None and done.state != "succeeded":
                self.say(f"{done.name} {done.state}: {done.failure.reason}, {done.failure.detail}")

    async def _kill(
        self, client: FarmClient, farm: subprocess.Popen[bytes], victim: str, moment: int
    ) -> None:
        """Kill one while jobs run, once there is one to kill."""
        async with asyncio.timeout(START_S):
            while self.ends.total() < moment:
                await asyncio.sleep(0.02)
            while (found := _victim(farm, victim)) is None:
                await asyncio.sleep(0.05)
        with contextlib.suppress(psutil.NoSuchProcess):
            found.kill()
        self.killed[victim] += 1
        self.say(f"killed the {victim} after {moment} jobs")

    async def _look(
        self, client: FarmClient, farm: subprocess.Popen[bytes], house: House, jobs: int
    ) -> None:
        async with asyncio.timeout(START_S):
            # One clean window is kept ready, and nothing else.
            while [window.prepared for window in await client.windows()] != [True]:
                await asyncio.sleep(0.05)
        # What a browser has just done with it goes on for a moment: the least of some looks counts.
        looks = []
        for _ in range(8):
            looks.append(_sample(farm, house, jobs))
            await asyncio.sleep(0.25)
        sample = min(looks, key=lambda look: (look.zombies, look.processes, look.pss_mb))
        self.samples.append(sample)
        self.say(str(sample))


def _victim(farm: subprocess.Popen[bytes], victim: str) -> psutil.Process | None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration, ValueError):
        (agent,) = agents_of(farm)
        match victim:
            case "agent":
                return agent
            case "driver":
                return driver_of(agent)
            case "browser":
                return browser_of(agent)
            case _:
                return next(
                    one
                    for one in browser_of(agent).children(recursive=True)
                    if "--type=renderer" in one.cmdline()
                )
    return None


def _sample(farm: subprocess.Popen[bytes], house: House, jobs: int) -> Sample:
    tree = [psutil.Process(farm.pid), *psutil.Process(farm.pid).children(recursive=True)]
    zombies = descriptors = 0
    for one in tree:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            zombies += one.status() == psutil.STATUS_ZOMBIE
            descriptors += one.num_fds()
    return Sample(
        jobs=jobs,
        pss_mb=pss_mb(farm.pid),
        processes=len(tree) - zombies,
        zombies=zombies,
        descriptors=descriptors,
        files=sum(1 for file in house.temporary.rglob("*") if file.is_file()),
    )
