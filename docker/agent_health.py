"""Exit with 0 if the agent of this container has its browser, if any, and its farm answers."""

import os
import sys
import urllib.request
from pathlib import Path


def _command(process: Path) -> bytes:
    try:
        return process.joinpath("cmdline").read_bytes().partition(b"\0")[0]
    except OSError:  # it has ended
        return b""


def main() -> None:
    """Look, and say what is wrong on stderr."""
    commands = [_command(path) for path in Path("/proc").glob("[0-9]*")]
    flows = os.environ.get("AGENT_TYPE") == "console"  # noqa: TID251 - a script of its own
    if not flows and not any(b"chromium" in command for command in commands):
        sys.exit("there is no browser")
    farms = os.environ["FARM_URL"].split(",")  # noqa: TID251 - a script of its own
    answers = [_answer_of(farm.strip().rstrip("/")) for farm in farms]
    if None not in answers:
        sys.exit(f"the farm does not answer: {answers[0]}")


def _answer_of(farm: str) -> OSError | None:
    try:
        urllib.request.urlopen(f"{farm}/healthz", timeout=3)  # noqa: S310 - the farm's own address
    except OSError as error:
        return error
    return None


if __name__ == "__main__":
    main()
