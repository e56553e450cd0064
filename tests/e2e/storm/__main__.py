"""`python -m tests.e2e.storm`: many jobs while everything is killed, stopped and cut off."""

import argparse
import asyncio
import secrets
import signal
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.e2e.storm.storm import Storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.storm")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--coordinators", type=int, default=1)
    parser.add_argument("--every", type=float, default=12.0, help="jobs from strike to strike")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--apart", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    storm = Storm(
        seed=asked.seed,
        jobs=asked.jobs,
        every=asked.every,
        coordinators=asked.coordinators,
        apart=asked.apart,
        say=say,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="tabfarm-storm-") as root:
            asyncio.run(_until_told(storm.run(Path(root))))
    except asyncio.CancelledError:
        say("ended before its end, with all that it had started")
        return 1
    struck = ", ".join(f"{blow} {kind} {n}" for (kind, blow), n in sorted(storm.struck.items()))
    say(f"struck {storm.struck.total()} times: {struck}")
    say(f"seed {storm.seed}: {dict(storm.ends)}, {storm.attempts} attempts")
    say(f"why: {dict(storm.failures)}")
    say("\n".join(storm.flaws) if storm.flaws else "nothing was lost, and nothing done twice")
    return 1 if storm.flaws else 0


async def _until_told(storm: Coroutine[Any, Any, None]) -> None:
    """Let it go on until somebody ends it, who so ends all that it has started."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(storm, name="storm")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Once: a second one must not keep it from ending the rest.
            asyncio.get_running_loop().add_signal_handler(
                number, lambda: task.cancelling() or task.cancel()
            )
    if task.cancelled():
        raise asyncio.CancelledError


_SINCE = perf_counter()


def say(text: str) -> None:
    print(f"{perf_counter() - _SINCE:7.1f} s: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
