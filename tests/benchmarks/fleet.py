"""`python -m tests.benchmarks.fleet`: one coordinator with very many agents.

The coordinator and the agents are processes of their own; the agents are simulated and do nothing
in their tabs. Prints a table and writes `build/fleet-bench.json`.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from farm.sdk import FarmClient
from tests.benchmarks.choosing import choosing
from tests.benchmarks.choosing import verdicts as choosing_verdicts
from tests.benchmarks.figures import Row, met, spread
from tests.benchmarks.processes import cpu_s, pss_mb
from tests.e2e.faults.house import AGENT_TOKEN, House
from tests.e2e.faults.watching import happened
from tests.e2e.processes import ROOT
from tests.e2e.turns import QUIET, SETTINGS, most_between, starts_of
from tests.simulated.crowd import CROWD, Crowd

_BODY = {"name": "bench", "steps": [{"goto": "https://example.com/"}]}
_AT_ONCE = 8
"""So many submit at once."""


class Agents:
    """The process of a crowd."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().strip()

    async def figures(self) -> Row:
        """What was felt since this was asked last."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        found: Row = json.loads(await self.line())
        return found


@asynccontextmanager
async def crowd(of: Crowd) -> AsyncIterator[Agents]:
    """Agents that are let in, for as long as the block lasts."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.simulated.crowd", CROWD.dump_json(of).decode())
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=pipe, stdout=pipe, limit=2**26, start_new_session=True
    )
    agents = Agents(process)
    try:
        assert await agents.line() == "in"
        yield agents
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def farm(**settings: str) -> AsyncIterator[tuple[House, int]]:
    """A coordinator in a house of its own, and the number of its process."""
    with tempfile.TemporaryDirectory(prefix="tabfarm-bench-") as root:
        house = House(root=Path(root), settings=settings)
        try:
            yield house, (await house.serve()).pid
        finally:
            house.close()


async def resting(house: House, pid: int, agents: Agents, seconds: float) -> Row:
    """Nothing but heartbeats."""
    await agents.figures()
    before, begun = cpu_s(pid), perf_counter()
    await asyncio.sleep(seconds)
    took = perf_counter() - begun
    felt = await agents.figures()
    return {
        "idle_cpu_percent": round(100 * (cpu_s(pid) - before) / took, 1),
        "pss_mb": round(pss_mb(pid)),
        "beats_per_s": round(len(felt["beats"]) / took),
        **spread("beat", felt["beats"]),
    }


async def working(house: House, pid: int, agents: Agents, jobs: int) -> Row:
    """So many jobs, submitted as fast as they are taken."""
    async with house.client() as client:
        await agents.figures()
        before, begun = cpu_s(pid), perf_counter()
        await submit(client, jobs)
        accepted = perf_counter() - begun
        felt = await done(agents, jobs)
        took = perf_counter() - begun
    return {
        "accepted_per_s": round(jobs / accepted),
        "jobs_per_s": round(jobs / took, 1),
        "cpu_ms_per_job": round(1000 * (cpu_s(pid) - before) / jobs, 1),
        **{f"busy_{name}": value for name, value in spread("beat", felt["beats"]).items()},
    }


async def submit(client: FarmClient, jobs: int) -> None:
    async def some(count: int) -> None:
        for _ in range(count):
            await client.submit(_BODY)

    async with asyncio.TaskGroup() as group:
        for n in range(_AT_ONCE):
            group.create_task(some(jobs // _AT_ONCE + (n < jobs % _AT_ONCE)))


async def done(agents: Agents, runs: int) -> Row:
    """Wait until so many runs have ended; everything that was felt until then."""
    felt: Row = {"beats": [], "gaps": [], "runs": 0}
    while felt["runs"] < runs:
        await asyncio.sleep(0.2)
        for name, value in (await agents.figures()).items():
            felt[name] += value
    return felt


async def parked(jobs: int) -> Row:
    """One slot, and a queue that is never empty: from the result that frees it to the next run."""
    async with farm() as (house, _), house.client() as client:
        one = Crowd(url=house.url, token=AGENT_TOKEN, agents=1, tabs=1)
        await submit(client, jobs)
        async with crowd(one) as agents:
            felt = await done(agents, jobs)
    return spread("freed_to_started", felt["gaps"][:-1])


async def dead(window_s: float) -> Row:
    """How long until what a dead agent ran is known to be lost, in windows."""
    row: Row = {}
    for name, number in (("closed", signal.SIGKILL), ("frozen", signal.SIGSTOP)):
        settings = {"FARM_LINK__WINDOW_S": str(window_s)}
        async with farm(**settings) as (house, _), house.client() as client:
            one = Crowd(url=house.url, token=AGENT_TOKEN, agents=1, tabs=1, run_s=600)
            async with crowd(one) as agents:
                job_id = (await client.submit(_BODY)).id
                await happened(client, job_id, "started")
                agents.process.send_signal(number)
                begun = perf_counter()
                await happened(client, job_id, "attempt_ended")
                row[f"{name}_noticed_windows"] = round((perf_counter() - begun) / window_s, 2)
    return row


async def fairness(noisy: int, quiet: int) -> Row:
    """A namespace with very many jobs and one with few, on one slot."""
    async with farm(**SETTINGS) as (house, _):
        starts = await starts_of(house, noisy=noisy, quiet=quiet)
    return {
        "noisy_before_quiet": starts.index(QUIET),
        "noisy_between_quiet": most_between(starts),
    }


async def run(agents: int, tabs: int, jobs: int, seconds: float, sizes: Sequence[int]) -> Row:
    """Measure everything; return it."""
    row: Row = {"agents": agents, "tabs": tabs}
    async with farm(FARM_LINK__WINDOW_S="10", FARM_LINK__HEARTBEAT_INTERVAL_S="2.5") as (
        house,
        pid,
    ):
        many = Crowd(url=house.url, token=AGENT_TOKEN, agents=agents, tabs=tabs)
        begun = perf_counter()
        async with crowd(many) as everybody:
            row["let_in_s"] = round(perf_counter() - begun, 1)
            row |= await resting(house, pid, everybody, seconds)
            row |= await working(house, pid, everybody, jobs)
    row |= await parked(min(jobs, 200))
    row |= await fairness(noisy=80, quiet=10)
    row |= await dead(3.0)
    return row | {"choosing": await choosing(sizes, min(jobs, 1_000))}


def verdicts(row: Row) -> list[str]:
    """Say which targets are met."""
    closed, frozen = row["closed_noticed_windows"], row["frozen_noticed_windows"]
    noisy = row["noisy_between_quiet"]
    return [
        f"closed link noticed after {closed} windows ({met(closed <= 1.25)} 1.25)",
        f"frozen process noticed after {frozen} windows ({met(frozen <= 2.25)} 2.25)",
        f"between two starts of a quiet namespace a noisy one has {noisy} ({met(noisy <= 1)} 1)",
        f"from a freed slot to the start of a parked job {row['freed_to_started_p50_ms']} ms (p50)",
        *choosing_verdicts(row["choosing"]),
    ]


def main() -> None:
    """Read the arguments, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=Path("build/fleet-bench.json"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    given = parser.parse_args()
    row = asyncio.run(run(given.agents, given.tabs, given.jobs, given.seconds, given.sizes))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(row | {"verdicts": verdicts(row)}, indent=2) + "\n")
    for name, value in row.items():
        if name != "choosing":
            print(f"{name:>28} {value}")
    for store, found in row["choosing"].items():
        for figures in found:
            print(f"{store:>28} {figures}")
    print(*verdicts(row), sep="\n")


if __name__ == "__main__":
    main()
