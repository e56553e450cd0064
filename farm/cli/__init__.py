"""The command line: data on stdout, talk on stderr, exit codes as in `farm.cli.exits`."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from farm.cli import (
    deployments,
    doctor,
    events,
    evidence,
    files,
    fleet,
    identities,
    jobs,
    leaving,
    live,
    namespaces,
    output,
    pools,
    run,
    tokens,
    up,
    verify,
)

app = typer.Typer(
    name="farm",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A self-hosted farm of browser workers.",
)
app.command()(run.run)
app.command()(up.up)
app.command()(up.serve)
app.add_typer(jobs.app, name="jobs")
app.add_typer(files.app, name="files")
app.command()(fleet.agents)
app.command()(fleet.workers)
app.command()(fleet.windows)
app.command()(leaving.drain)
app.add_typer(deployments.app, name="deployments")
app.command()(events.events)
app.command()(pools.pools)
jobs.app.command()(pools.why)
app.command()(live.live)
app.command()(evidence.command)
app.command()(evidence.delivery)
app.add_typer(identities.app, name="identities")
app.add_typer(namespaces.app, name="namespaces")
app.add_typer(tokens.app, name="token")
app.command()(verify.verify)
app.command()(doctor.doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            output.write(f"tabfarm {version('tabfarm')}")
        except PackageNotFoundError:
            output.write("tabfarm (run from its sources, not installed)")
        raise typer.Exit


@app.callback()
def _options(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """A self-hosted farm of browser workers."""


def main() -> None:
    """Run the command line and exit."""
    if sys.stdout is None:  # the shell's >&- does that
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open as long as we are
    app()
