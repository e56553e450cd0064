"""`farm files …`: files that jobs give to pages."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, BinaryIO

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
    # Before the request begins: there a failure would look like one of the connection.
    with _opened(file) as content:
        stored = await client.put_file(name or file.name, _pieces(content))
    if as_json:
        output.write_json(output.of_models(stored))
    else:
        output.write(output.plain(stored.reference))
    return ExitCode.SUCCEEDED


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}", ExitCode.USAGE) from None


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := file.read(_CHUNK):
        yield piece
