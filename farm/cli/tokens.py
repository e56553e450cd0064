"""`farm token …`: who may come in."""

from enum import StrEnum
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Make the tokens that open the farm.")


class TokenScope(StrEnum):
    """How far a token reaches."""

    AGENT = "agent"
    ADMIN = "admin"


@app.command("list")
@farm_command
async def list_(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the tokens that are not revoked."""
    found = await client.tokens()
    output.write_models(
        found,
        ("ID", "SCOPE", "NAME", "NAMESPACES", "QUEUES", "NODES", "METADATA", "CREATED"),
        (
            (
                one.id,
                one.scope,
                one.name or None,
                list(one.namespaces),
                None if one.task_queues is None else list(one.task_queues),
                None if one.nodes is None else list(one.nodes),
                None if one.metadata is None else sorted(one.metadata),
                f"{one.created_at:%Y-%m-%d %H:%M:%S}",
            )
            for one in found
        ),
        as_json=as_json,
        whole=("ID",),
    )
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def create(
    client: FarmClient,
    scope: Annotated[TokenScope, typer.Option("--scope", help="How far it reaches.")],
    name: Annotated[str, typer.Option("--name", help="Whose it is, for people.")] = "",
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="What it is for, by default the own namespace; agents' may have several.",
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", metavar="QUEUE", help="The task queue its agents may serve; may be repeated."
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODE", help="The node its agents may be; may be repeated."),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata",
            metavar="KEY[=VALUE]",
            help="The metadata its agents may have, with any value or this; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Make a token and write it to stdout; it can't be shown again."""
    created = await client.create_token(
        scope.value,
        name,
        namespaces=namespace,
        task_queues=queue,
        nodes=node,
        metadata=_allowed(metadata),
    )
    if as_json:
        output.write_json(output.of_models(created))
    else:
        output.write(created.token)
    return ExitCode.SUCCEEDED


def _allowed(pairs: list[str] | None) -> dict[str, list[str] | None] | None:
    """Return the values that each key may have; a key without one may have any."""
    if not pairs:
        return None
    allowed: dict[str, list[str] | None] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not key:
            raise CommandError(f"{pair!r} is not KEY or KEY=VALUE", ExitCode.USAGE)
        before = allowed.get(key, [])
        allowed[key] = [*before, value] if mark and before is not None else None
    return allowed


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
