"""`make bench`: the farm against bare Playwright, in one interleaved run.

Prints a table and writes `build/bench.json`. CPU is that of coordinator, agent, driver and
browser; the site and the load generator do not count.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from farm.sdk.client import FarmClient
from tests.benchmarks.load import Load
from tests.benchmarks.processes import cpu_s, pss_mb

_CONCURRENCY = (1, 2, 4, 8)
_START_S = 60.0

Cell = Callable[[int, float], Awaitable[list[float]]]
"""(concurrency, seconds) -> the latency of each job, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """A `farm up` and who asks it."""

    pid: int
    client: FarmClient


class BareLoop:
    """The bare loop's process."""

    def __init__(self, process: "subprocess.Popen[str]", base: str) -> None:
        self._process = process
        self._base = base
        self.pid = process.pid
        self.browser = json.loads(self._answer())

    def cell(self, mode: str) -> Cell:
        """Return what measures one mode."""

        async def run(concurrency: int, seconds: float) -> list[float]:
            order = {
                "mode": mode,
                "concurrency": concurrency,
                "seconds": seconds,
                "base": self._base,
            }
            return await asyncio.to_thread(self._ask, json.dumps(order))

        return run

    def _ask(self, order: str) -> list[float]:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        latencies: list[float] = json.loads(self._answer())["latencies"]
        return latencies

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bare loop has ended")
        return line


@contextlib.contextmanager
def _process(
    *arguments: str, env: dict[str, str] | None = None
) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()


@contextlib.asynccontextmanager
async def _farm(base: str, slots: int, *options: str) -> AsyncIterator[Farm]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        data = Path(folder) / "farm"
        host = base.removeprefix("http://")
        arguments = (
            "-m",
            "farm.cli",
            "up",
            "--port",
            "0",
            "--data-dir",
            str(data),
            "--allow",
            host,
            *options,
        )
        with _process(*arguments, env=_agents(slots)) as running:
            url, token = await _address(data)
            async with FarmClient(url, token) as client:
                await _until_ready(client)
                yield Farm(pid=running.pid, client=client)


def _agents(slots: int) -> dict[str, str]:
    return {"AGENT_SLOTS": str(slots), "AGENT_PREPARED_WINDOWS": str(slots)}


async def _address(data: Path) -> tuple[str, str]:
    async with asyncio.timeout(_START_S):
        while not (data / "farm.json").exists():
            await asyncio.sleep(0.1)
    url = json.loads((data / "farm.json").read_text())["url"]
    return url, (data / "admin.token").read_text().strip()


async def _until_ready(client: FarmClient) -> None:
    async with asyncio.timeout(_START_S):
        while not await client.agents():
            await asyncio.sleep(0.1)


def _farm_cell(client: FarmClient, base: str, **browser: str) -> Cell:
    async def run(concurrency: int, seconds: float) -> list[float]:
        load = Load(client, base, browser)
        await load.run(concurrency, seconds)
        return load.latencies

    return run


async def _measure(cell: Cell, pid: int, concurrency: int, seconds: float) -> dict[str, float]:
    before = cpu_s(pid)
    began = asyncio.get_running_loop().time()
    latencies = sorted(await cell(concurrency, seconds))
    took = asyncio.get_running_loop().time() - began
    memory = pss_mb(pid)
    return {
        "jobs": len(latencies),
        "jobs_per_s": len(latencies) / took,
        "p50_ms": 1000 * statistics.median(latencies),
        "p95_ms": 1000 * latencies[min(len(latencies) - 1, int(0.95 * len(latencies)))],
        "cpu_ms_per_job": 1000 * (cpu_s(pid) - before) / len(latencies),
        "pss_mb": memory,
    }


async def run(seconds: float, rounds: int, concurrencies: tuple[int, ...]) -> dict[str, Any]:
    """Measure every mode at every concurrency, `rounds` times, interleaved."""
    with _process("-m", "tests.benchmarks.site") as site:
        assert site.stdout is not None
        base = site.stdout.readline().strip()
        with _process("-m", "tests.benchmarks.bare") as bare_process:
            bare = BareLoop(bare_process, base)
            slots = max(concurrencies)
            # A farm each: the bare loop closes its tabs before it goes on to contexts, too.
            async with (
                _farm(base, slots) as clean,
                _farm(base, slots) as reset,
                _farm(base, slots) as reuse,
                _farm(base, slots, "--agents", "0", "--console", "1") as flow,
            ):
                cells = [
                    ("bare-tab", bare.cell("tab"), bare.pid),
                    ("bare-context", bare.cell("context"), bare.pid),
                    ("farm-clean", _farm_cell(clean.client, base, context="fresh"), clean.pid),
                    ("farm-reset", _farm_cell(reset.client, base, context="reset"), reset.pid),
                    ("farm-reuse", _farm_cell(reuse.client, base, context="reuse"), reuse.pid),
                    ("farm-flow", _farm_cell(flow.client, base, use="none"), flow.pid),
                ]
                rows = await _rounds(cells, seconds, rounds, concurrencies)
                return {"machine": _machine(bare.browser), "rows": rows}


async def _rounds(
    cells: list[tuple[str, Cell, int]], seconds: float, rounds: int, concurrencies: tuple[int, ...]
) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _, cell, _ in cells:
        await cell(max(concurrencies), 1.0)  # warm up
    for number in range(rounds):
        for concurrency in concurrencies:
            # The order turns with each round, so that no mode always follows the same other.
            turned = cells[number % len(cells) :] + cells[: number % len(cells)]
            for name, cell, pid in turned:
                measured = await _measure(cell, pid, concurrency, seconds)
                found.setdefault((name, concurrency), []).append(measured)
                print(f"  round {number + 1}: {name} x{concurrency}", file=sys.stderr)
    return [
        {
            "name": name,
            "concurrency": concurrency,
            **{key: round(statistics.median(m[key] for m in all_of), 2) for key in all_of[0]},
        }
        for (name, concurrency), all_of in sorted(found.items())
    ]


def _machine(browser: dict[str, str]) -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "playwright": version("playwright"),
        "browser": browser["product"],
        "executable": browser["executable"],
    }


def _verdicts(rows: list[dict[str, Any]], *, shell: bool) -> list[str]:
    wanted = 1.7 if shell else 1.8
    speed = {(row["name"], row["concurrency"]): row["jobs_per_s"] for row in rows}
    cpu = {(row["name"], row["concurrency"]): row["cpu_ms_per_job"] for row in rows}
    lines = []
    for concurrency in sorted({row["concurrency"] for row in rows}):
        clean = cpu["farm-clean", concurrency] / cpu["bare-context", concurrency]
        bare = speed["bare-context", concurrency]
        fresh, reset = (speed[name, concurrency] / bare for name in ("farm-clean", "farm-reset"))
        lines.append(
            f"x{concurrency}: jobs/s of a bare context loop: clean {fresh:.2f} "
            f"({_met(fresh >= 1)} 1.0), reset {reset:.2f} ({_met(reset >= wanted)} {wanted})"
        )
        extra = cpu["farm-reuse", concurrency] - cpu["bare-tab", concurrency]
        lines.append(
            f"x{concurrency}: clean {clean:.2f} of a bare context ({_met(clean <= 1.25)} 1.25); "
            f"reuse {extra:+.1f} CPU-ms against a bare tab ({_met(extra <= 25)} 25)"
        )
        tab, flow = cpu["farm-clean", concurrency], cpu["farm-flow", concurrency]
        lines.append(
            f"x{concurrency}: a flow takes {flow:.1f} CPU-ms a job, a tab {tab:.1f}:"
            f" {tab / flow:.1f} times as much"
        )
    return lines


def _met(good: bool) -> str:
    return "meets" if good else "MISSES"


def _print(result: dict[str, Any]) -> None:
    print(json.dumps(result["machine"]))
    keys = ("jobs_per_s", "p50_ms", "p95_ms", "cpu_ms_per_job", "pss_mb")
    print(f"{'name':<14}{'conc.':>6}" + "".join(f"{key:>16}" for key in keys))
    for row in result["rows"]:
        print(f"{row['name']:<14}{row['concurrency']:>6}" + "".join(f"{row[k]:>16}" for k in keys))
    for line in result["verdicts"]:
        print(line)


def main() -> None:
    """Read the arguments, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of one cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=list(_CONCURRENCY))
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    given = parser.parse_args()
    result = asyncio.run(run(given.seconds, given.rounds, tuple(given.concurrency)))
    shell = "shell" in Path(result["machine"]["executable"]).name
    result["verdicts"] = _verdicts(result["rows"], shell=shell)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    _print(result)


if __name__ == "__main__":
    main()
