"""`python -m tests.e2e.storm`: many jobs while everything is killed, stopped and cut off."""

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from tests.e2e.storm.storm import Storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.storm")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--coordinators", type=int, default=1)
    parser.add_argument("--lasts-s", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    asked = parser.parse_args()
    storm = Storm(
        seed=asked.seed,
        jobs=asked.jobs,
        lasts_s=asked.lasts_s,
        coordinators=asked.coordinators,
        say=say,
    )
    with tempfile.TemporaryDirectory(prefix="tabfarm-storm-") as root:
        asyncio.run(storm.run(Path(root)))
    say(f"seed {storm.seed}: {dict(storm.ends)}, {storm.attempts} attempts")
    say("\n".join(storm.flaws) if storm.flaws else "nothing was lost, and nothing done twice")
    return 1 if storm.flaws else 0


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
