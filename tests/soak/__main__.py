"""`python -m tests.soak`: 500 jobs on one agent, 20 kills in between, and what must be flat."""

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from agent.clock import monotonic
from tests.soak.bounds import exceeded
from tests.soak.soaking import Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    asked = parser.parse_args()
    soak = Soak(seed=asked.seed, jobs=asked.jobs, kills=asked.kills, say=say)
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="tabfarm-soak-") as root:
        asyncio.run(soak.run(Path(root)))
    print(f"ends: {dict(soak.ends)}, {soak.attempts} attempts, kills: {dict(soak.killed)}")
    print(f"{soak.jobs / (monotonic() - began):.1f} jobs/s")
    grown = exceeded(soak.samples[0], soak.samples[-1])
    print("\n".join(grown) if grown else "flat")
    return 1 if grown or soak.ends["succeeded"] != soak.jobs else 0


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
