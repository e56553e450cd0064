"""`farm files …`: files that jobs give to pages."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Hand in files that jobs give to pages.")
_CHUNK = 256 * 1024


@app.command()
@farm_command
async def put(
    client: FarmClient,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to hand in.")],
    name: Annotated[str | None, typer.Option("--name", help="What the page is to call it.")] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Hand in a file and write its reference to stdout, for the step `upload`."""
    stored = await client.put_file(name or file.name, _pieces(file))
    if as_json:
        output.write_json(output.of_models(stored))
    else:
        output.write(output.plain(stored.reference))
    return ExitCode.SUCCEEDED


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                yield piece
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}", ExitCode.USAGE) from None
