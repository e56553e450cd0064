"""`farm doctor`: asks the agent, which alone knows about browsers."""

import subprocess
import sys
from typing import Annotated

import typer

from farm.cli.connect import AsJson
from farm.cli.exits import ExitCode


def doctor(
    *,
    install: Annotated[
        bool, typer.Option("--install", help="Install a browser if none is found.")
    ] = False,
    headed: Annotated[bool, typer.Option("--headed", help="Look for a browser to show.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say which browser would be used, and load one page with it."""
    flags = {"--install": install, "--headed": headed, "--json": as_json}
    command = [sys.executable, "-m", "agent.cli", "doctor"]
    command += [name for name, on in flags.items() if on]
    ended = subprocess.run(command, check=False)  # noqa: S603 - nothing in it was typed in
    raise typer.Exit(ExitCode.SUCCEEDED if ended.returncode == 0 else ExitCode.FAILED)
