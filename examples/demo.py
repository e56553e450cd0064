"""A farm at work: two jobs on the sample shop, by separate processes, over HTTP.

`make demo`, or `python -m examples.demo [--headed] [-o DIR]`.
"""

import argparse
import asyncio
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from examples.shop import build_app
from farm.cli.folder import ResultFolder
from farm.cli.follow import follow
from farm.cli.output import build_table, plain
from farm.cli.up import say_who_sees_it
from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient

JOBS = ("catalogue", "order")
_HERE = Path(__file__).parent / "shop"
_START_S = 30.0
_STOP_S = 10.0

talk = Console(stderr=True, markup=False, highlight=False)


class DemoError(Exception):
    """The demonstration can't go on; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """Where the farm is, and what opens it."""

    url: str
    token: str


@asynccontextmanager
async def open_shop() -> AsyncIterator[int]:
    """Serve the sample shop on a free loopback port."""
    runner = web.AppRunner(build_app(), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def farm_up(data: Path, shop_port: int, *, headed: bool) -> AsyncIterator[Farm]:
    """Run `farm up` as a process of its own, with one agent, and end it with everything it has."""
    command = [sys.executable, "-m", "farm.cli", "up", "--agents", "1", "--port", "0"]
    command += ["--data-dir", str(data), "--allow", f"127.0.0.1:{shop_port}"]
    command += ["--headed"] if headed else []
    log = data / "farm.log"
    with log.open("wb") as said:
        # A session of its own: a Ctrl-C in the terminal is ours to pass on, once.
        process = await asyncio.create_subprocess_exec(
            *command, stdout=said, stderr=said, start_new_session=True
        )
    try:
        yield await _started(process, data)
    except Exception:
        talk.print(plain_tail(log))
        raise
    finally:
        await _end(process)


async def _started(process: asyncio.subprocess.Process, data: Path) -> Farm:
    try:
        async with asyncio.timeout(_START_S):
            while not (data / "farm.json").exists():
                if process.returncode is not None:
                    raise DemoError(f"the farm ended with {process.returncode}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise DemoError("the farm did not start in time") from None
    url = json.loads((data / "farm.json").read_text())["url"]
    return Farm(url=url, token=(data / "admin.token").read_text().strip())


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def plain_tail(log: Path, lines: int = 20) -> str:
    """Return the end of a log, safe to print."""
    return "\n".join(plain(line) for line in log.read_text(errors="replace").splitlines()[-lines:])


async def run_job(
    client: FarmClient, name: str, shop_url: str, out: Path, progress: Progress
) -> JobDetail:
    """Submit one job file, show how it goes, and keep what it produced."""
    text = (_HERE / f"{name}.yaml").read_text()
    accepted = await client.submit(text, params={"base": shop_url})
    bar = progress.add_task(name, total=None, state="queued", items=0)

    async def seen(job: JobDetail) -> None:
        known = job.progress
        progress.update(
            bar,
            state=plain(known.step if known is not None and not job.at_rest else job.state),
            items=job.item_count,
            total=known.steps if known is not None else None,
            completed=known.step_index if known is not None else 0,
        )

    job = await follow(client, accepted.id, seen)
    progress.update(bar, total=1, completed=1)
    await ResultFolder(out / name, client).complete(job)
    return job


async def run_jobs(farm: Farm, shop_url: str, out: Path) -> list[JobDetail]:
    """Run both jobs at once and return them in their order."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:10}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[items]:>3} items  {task.fields[state]}"),
    )
    async with FarmClient(farm.url, farm.token) as client:
        with Progress(*columns, console=talk) as progress:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(run_job(client, name, shop_url, out, progress), name=name)
                    for name in JOBS
                ]
    return [task.result() for task in tasks]


def show(out: Path) -> None:
    """Print the records as tables."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 160
    for name in JOBS:
        records = read_records(out / name / "items.jsonl")
        names = dict.fromkeys(name for record in records for name in record)
        columns = [name for name in names if not name.startswith("_")]
        rows = ([record.get(column) for column in columns] for record in records)
        console.print(f"\n{name}: {len(records)} records")
        console.print(build_table(columns, rows))


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


async def demo(out: Path, *, headed: bool) -> int:
    """Run it all and return the exit code."""
    began = time.perf_counter()
    if headed:
        say_who_sees_it()
    with tempfile.TemporaryDirectory(prefix="farm-demo-") as data:
        async with open_shop() as port, farm_up(Path(data), port, headed=headed) as farm:
            talk.print(f"The shop is at http://127.0.0.1:{port}/, the farm at {farm.url}")
            jobs = await run_jobs(farm, f"http://127.0.0.1:{port}", out)
    show(out)
    for job in jobs:
        if job.failure is not None:
            talk.print(plain(f"{job.name} {job.state}: {job.failure.reason}, {job.failure.detail}"))
    print(f"\nThe records and files are in {out}/; the farm was at {farm.url}")
    records = sum(len(read_records(out / name / "items.jsonl")) for name in JOBS)
    artifacts = sum(job.artifact_count for job in jobs)
    print(f"demo: {records} records, {artifacts} artifacts, in {time.perf_counter() - began:.1f} s")
    return 0 if all(job.state == "succeeded" for job in jobs) else 1


async def until_told(out: Path, *, headed: bool) -> int:
    """Run the demonstration; SIGTERM ends it as Ctrl-C does."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await demo(out, headed=headed)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--headed", action="store_true", help="show the browser")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/demo"), metavar="DIR")
    arguments = parser.parse_args()
    for name in JOBS:
        shutil.rmtree(arguments.output / name, ignore_errors=True)
    try:
        return asyncio.run(until_told(arguments.output, headed=arguments.headed))
    except (KeyboardInterrupt, asyncio.CancelledError):
        talk.print("Stopped; nothing is left running.")
        return 130
    except DemoError as error:
        talk.print(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
