"""`farm identities …`: what windows are to be and to remember, saved in the farm."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.protocol.identities import IdentityView
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Save identities for jobs to work as.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The identity's name.")]


@app.command("list")
@farm_command
async def list_(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the saved identities."""
    found = await client.identities()
    output.write_models(
        found,
        ("NAME", "VERSION", "OPTIONS", "PROXY", "COOKIES", "ORIGINS", "SAVED", "IN USE"),
        (
            (
                one.name,
                one.version,
                one.options.model_dump(mode="json", exclude_none=True) or None,
                one.proxy.server if one.proxy else None,
                one.state.cookies if one.state else None,
                one.state.origins if one.state else None,
                f"{one.state.saved_at:%Y-%m-%d %H:%M:%S}" if one.state else None,
                [use.job_id for use in one.in_use] or None,
            )
            for one in found
        ),
        whole=("NAME",),
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def show(client: FarmClient, name: Name, as_json: AsJson = False) -> ExitCode:
    """Show one, without what is secret of it."""
    _write(await client.identity(name), as_json=as_json)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def put(
    client: FarmClient,
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Its options, proxy and state, YAML or JSON; - reads stdin. What the file leaves"
            " out stays as it is, null takes it away. Without a file nothing is changed.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="A storage state, as Playwright writes it into a file."),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Save an identity, or change it."""
    content = {} if file is None else _content(file)
    if state is not None:
        content["state"] = _json(state)
    _write(await client.put_identity(name, content), as_json=as_json)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def delete(client: FarmClient, name: Name, as_json: AsJson = False) -> ExitCode:
    """Forget one with all it remembers."""
    await client.delete_identity(name)
    if as_json:
        output.write_json({"name": name, "deleted": True})
    return ExitCode.SUCCEEDED


def _write(identity: IdentityView, *, as_json: bool) -> None:
    shown = identity.model_dump(mode="json", exclude_none=True)
    if as_json:
        output.write_json(shown)
    else:
        output.write_table(("KEY", "VALUE"), shown.items())


def _content(file: Path) -> dict[str, Any]:
    """Read what an identity is to be. Raises CommandError with `USAGE` if that can't be."""
    from farm.jobs.files.problems import InvalidFileError
    from farm.jobs.files.reading import read

    text = sys.stdin.buffer.read() if str(file) == "-" else _bytes(file)
    try:
        value = read(text, content_type=None).value
    except InvalidFileError as error:
        found = error.problems[0]
        where = f"{file}, line {found.line}" if found.line else str(file)
        raise CommandError(f"{where}: {found.detail}", ExitCode.USAGE) from None
    if not isinstance(value, dict):
        raise CommandError(f"{file} is not a mapping", ExitCode.USAGE)
    return value


def _json(file: Path) -> object:
    try:
        return json.loads(_bytes(file))
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}", ExitCode.USAGE) from None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file} can't be read: {error.strerror}", ExitCode.USAGE) from None
