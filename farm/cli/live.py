"""`farm live`: a link to watch a tab with, or all of them."""

import getpass
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.protocol.resources import WorkerView
from farm.sdk import FarmClient


@farm_command
async def live(
    client: FarmClient,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB|CONTEXT]",
            help="A running job, or a tab as `farm workers --json` names it (`live`); "
            "without one: the wall of all tabs.",
        ),
    ] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Let whoever has the link take over.")
    ] = False,
    lasts_s: Annotated[
        float | None, typer.Option("--for", min=1, help="How many seconds it opens anything.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What others call who comes by it.")
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Write a link to watch a tab with a browser; whoever has it needs nothing else."""
    if control and what is None:
        raise CommandError("the wall is for looking: name a job or a tab", ExitCode.USAGE)
    context = None if what is None else _context(what, await client.workers())
    made = await client.live_link(
        context,
        mode="control" if control else "view",
        name=name or _somebody(),
        lasts_s=lasts_s,
    )
    if as_json:
        output.write_json({**output.of_models(made), "url": client.url + made.path})
    else:
        output.write(client.url + made.path)
        output.say(f"It opens until {made.expires_at:%Y-%m-%d %H:%M:%S} UTC.")
    return ExitCode.SUCCEEDED


def _context(what: str, workers: tuple[WorkerView, ...]) -> str:
    """Return the tab that is meant.

    Raises:
        CommandError: If it is neither a job that runs nor a tab that is lent.
    """
    for worker in workers:
        job = None if worker.assignment is None else worker.assignment.job_id
        if worker.live is not None and what in (worker.live, job):
            return worker.live
    raise CommandError(
        f"{what} is neither a job that is running in a tab nor a tab that is in use; "
        "`farm workers` lists them",
        ExitCode.FAILED,
    )


def _somebody() -> str:
    """Return who makes the link, as far as a link can say it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        return "viewer"
    return "".join(c for c in user if c.isalnum() or c in "_.-")[:40] or "viewer"
