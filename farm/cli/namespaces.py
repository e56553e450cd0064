"""`farm namespaces …`: which there are, and where their work is done."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.protocol.resources import NamespaceView, PlacementKind
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Make namespaces, and say where their work is done.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The namespace.")]


@app.command("list")
@farm_command
async def list_(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the namespaces."""
    _write(await client.namespaces(), as_json=as_json)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def create(client: FarmClient, name: Name, as_json: AsJson = False) -> ExitCode:
    """Make a namespace; one that is there is no error."""
    _write([await client.create_namespace(name)], as_json=as_json, single=True)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def place(
    client: FarmClient,
    name: Name,
    *,
    prefer: Annotated[
        list[str] | None,
        typer.Option("--prefer", metavar="NODE", help="First on this node; may be repeated."),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", metavar="NODE", help="Only on this node; may be repeated."),
    ] = None,
    anywhere: Annotated[bool, typer.Option("--anywhere", help="On any node, as at first.")] = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Say where the work of a namespace is done."""
    if [bool(prefer), bool(pin), anywhere].count(True) != 1:
        raise CommandError("say one of --prefer, --pin and --anywhere", ExitCode.USAGE)
    kind: PlacementKind = "prefer" if prefer else "pinned" if pin else "unplaced"
    placed = await client.place_namespace(name, kind, prefer or pin or ())
    _write([placed], as_json=as_json, single=True)
    return ExitCode.SUCCEEDED


def _write(found: list[NamespaceView], *, as_json: bool, single: bool = False) -> None:
    output.write_models(
        found[0] if single else found,
        ("NAMESPACE", "PLACEMENT", "NODES", "ORIGIN", "CREATED"),
        (
            (
                one.name,
                one.placement,
                list(one.labels) or None,
                one.origin,
                f"{one.created_at:%Y-%m-%d %H:%M:%S}",
            )
            for one in found
        ),
        whole=("NAMESPACE",),
        as_json=as_json,
    )
