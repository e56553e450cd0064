"""`farm token …`: who may come in."""

from enum import StrEnum
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Make the tokens that open the farm.")


class TokenScope(StrEnum):
    """How far a token reaches."""

    AGENT = "agent"
    ADMIN = "admin"


@app.command()
@farm_command
async def create(
    client: FarmClient,
    scope: Annotated[TokenScope, typer.Option("--scope", help="How far it reaches.")],
    name: Annotated[str, typer.Option("--name", help="Whose it is, for people.")] = "",
    as_json: AsJson = False,
) -> ExitCode:
    """Make a token and write it to stdout; it can't be shown again."""
    created = await client.create_token(scope.value, name)
    if as_json:
        output.write_json(output.of_models(created))
    else:
        output.write(created.token)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def revoke(
    client: FarmClient,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, not itself.")],
    as_json: AsJson = False,
) -> ExitCode:
    """Let a token open nothing any more."""
    await client.revoke_token(token_id)
    if as_json:
        output.write_json({"id": token_id, "revoked": True})
    return ExitCode.SUCCEEDED
