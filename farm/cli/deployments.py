"""`farm deployments …`: what is declared to be rolled out."""

from collections.abc import Sequence
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.protocol.resources import DeploymentView
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Declare what is rolled out, and what it serves.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="As AGENT_DEPLOYMENT has it.")]


@app.command("list")
@farm_command
async def list_(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the deployments, with how many agents of each are present."""
    _write(await client.deployments(), as_json=as_json)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def declare(
    client: FarmClient,
    name: Name,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", help="A task queue that it serves; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Declare a deployment, or declare it otherwise."""
    _write([await client.declare_deployment(name, queue or ["default"])], as_json=as_json)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def withdraw(client: FarmClient, name: Name, as_json: AsJson = False) -> ExitCode:
    """Declare a deployment no more; its agents stay."""
    await client.withdraw_deployment(name)
    if as_json:
        output.write_json({"name": name, "declared": False})
    return ExitCode.SUCCEEDED


def _write(found: Sequence[DeploymentView], *, as_json: bool) -> None:
    output.write_models(
        found,
        ("DEPLOYMENT", "QUEUES", "AGENTS", "DECLARED"),
        ((d.name, list(d.queues), d.agents, f"{d.updated_at:%Y-%m-%d %H:%M:%S}") for d in found),
        as_json=as_json,
    )
