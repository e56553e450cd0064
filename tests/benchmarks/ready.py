"""`python -m tests.benchmarks.ready`: how soon a prepared window works, what it weighs, and for how
long the farm is away after something was killed.

Prints a table and writes `build/ready-bench.json`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from agent.chromium.browser import ChromiumBrowser
from agent.telemetry import configure_logging
from farm import config, main
from farm.manager.manager import WorkerContextManager
from farm.protocol import messages as wire
from farm.protocol.plan import PLAIN, Plan
from farm.sdk.client import FarmClient
from tests.benchmarks.__main__ import _farm, _process
from tests.e2e.faults.house import browser_of, driver_of

_TABS = 8
_START_S = 60.0
_MOST = 10
"""So many times a bare evaluate may the first command take."""


async def bare_evaluate(browser: ChromiumBrowser, rounds: int) -> list[float]:
    """Return how long Runtime.evaluate takes on a page, in seconds, with nothing in between."""
    await browser.open_window("bare", "bare-tab", PLAIN)
    session = browser._windows["bare"].tabs["bare-tab"]._session
    took = []
    for _ in range(rounds):
        began = perf_counter()
        await session.send("Runtime.evaluate", {"expression": "1"})
        took.append(perf_counter() - began)
    await browser.close_window("bare")
    return took


async def weights(browser: ChromiumBrowser) -> dict[str, float]:
    """Return MB for each clean window, and each further tab of one."""
    await browser.open_window("first", "first-tab", PLAIN)
    base, _ = await browser.weigh()
    for number in range(_TABS):
        await browser.open_window(f"w{number}", f"w{number}-tab", PLAIN)
    windows, _ = await browser.weigh()
    for number in range(_TABS):
        await browser.open_tab("first", f"t{number}")
    tabs, _ = await browser.weigh()
    return {
        "mb_per_clean_window": round((windows - base) / _TABS, 1),
        "mb_per_extra_tab": round((tabs - windows) / _TABS, 1),
    }


@contextlib.asynccontextmanager
async def one_agent(folder: Path) -> AsyncIterator[WorkerContextManager]:
    """Run a coordinator in this process, and an agent beside it; give the pool manager."""
    async with main.coordinator(config.Settings(data_dir=folder / "farm", port=0)) as farm:
        env = {
            "FARM_URL": farm.url,
            "AGENT_TOKEN": await farm.mint_agent_token("bench"),
            "AGENT_CLIENT_ID": "bench",
        }
        with _process("-m", "agent.cli", "run", env=env):
            yield farm._dispatcher._placing._taking._manager


async def first_commands(manager: WorkerContextManager, rounds: int) -> list[float]:
    """Return how long it takes from `acquire` until the agent has begun the first command."""
    plan = Plan(job_id="j", attempt_id="a", name="bench", steps=())
    took = []
    for number in range(rounds):
        await _prepared(manager)
        began = perf_counter()
        handle = await manager.acquire("default", f"t{number}", client_type="browser")
        assert handle is not None
        sent = await handle.send(f"c{number}", wire.RunPlan(plan=plan, last=True))
        while not sent.acknowledged:
            await asyncio.sleep(0)
        took.append(perf_counter() - began)
        handle.forget(sent)
        await handle.release()
    return took


async def _prepared(manager: WorkerContextManager) -> None:
    async with asyncio.timeout(_START_S):
        while True:
            snapshot = await manager._acquisition._registry.snapshot(now=manager._clock())
            for client in snapshot.clients:
                free = [c for c in client.contexts.values() if c.lendable]
                if len(free) == len(client.windows) == 1 and not client.assignments:
                    return
            await asyncio.sleep(0.02)


Victim = Callable[[psutil.Process], psutil.Process]


def _renderer_of(agent: psutil.Process) -> psutil.Process:
    family = browser_of(agent).children(recursive=True)
    return next(p for p in family if any("--type=renderer" in a for a in p.cmdline()))


_VICTIMS: dict[str, Victim] = {
    "renderer": _renderer_of,
    "driver": driver_of,
    "browser": browser_of,
    "agent": lambda agent: agent,
}


async def recovery(rounds: int) -> dict[str, float]:
    """Return the seconds from a kill until a job that is submitted at once has succeeded."""
    took: dict[str, list[float]] = {name: [] for name in _VICTIMS}
    async with _farm("http://127.0.0.1:1", 2) as farm:
        await _job(farm.client)
        for _ in range(rounds):
            for name, victim in _VICTIMS.items():
                children = psutil.Process(farm.pid).children()
                agent = next(child for child in children if "agent.cli" in child.cmdline())
                victim(agent).kill()
                began = perf_counter()
                await _job(farm.client)
                took[name].append(perf_counter() - began)
                print(f"  {name}: {took[name][-1]:.2f} s", file=sys.stderr)
    return {f"recovery_{name}_s": round(statistics.median(t), 2) for name, t in took.items()}


async def _job(client: FarmClient) -> None:
    job = await client.submit(
        {"name": "bench", "steps": [{"goto": "data:text/html,<title>x</title>"}]}, wait_s=60
    )
    if job.state != "succeeded":
        raise RuntimeError(f"{job.id} is {job.state}: {job.failure}")


async def run(rounds: int) -> dict[str, Any]:
    """Measure everything."""
    configure_logging(level="error")
    browser = ChromiumBrowser(headless=True, env=os.environ)
    info = await browser.start(lambda _: None)
    try:
        found: dict[str, Any] = {"browser": info.product, "executable": info.executable}
        found |= await weights(browser)
        evaluate = await bare_evaluate(browser, 5 * rounds)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            async with one_agent(Path(folder)) as manager:
                first = await first_commands(manager, rounds)
    finally:
        await browser.kill()
    found["bare_evaluate_p50_ms"] = round(1000 * statistics.median(evaluate), 2)
    found["first_command_p50_ms"] = round(1000 * statistics.median(first), 2)
    found["first_command_p95_ms"] = round(1000 * sorted(first)[int(0.95 * len(first))], 2)
    times = statistics.median(first) / statistics.median(evaluate)
    found["first_command_in_evaluates"] = round(times, 1)
    found["verdict"] = f"{'meets' if times <= _MOST else 'MISSES'} {_MOST} bare evaluates"
    return found | await recovery(max(1, rounds // 10))


def cli() -> None:
    """Read the arguments, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("build/ready-bench.json"))
    given = parser.parse_args()
    found = asyncio.run(run(given.rounds))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    for name, value in found.items():
        print(f"{name:<28}{value}")


if __name__ == "__main__":
    cli()
