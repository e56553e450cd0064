"""Finding the farm: its address and a token, as told, else from the data directory."""

import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Concatenate, ParamSpec, cast

import typer

from farm.cli import running
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.sdk import FarmClient

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="FARM_URL", help="The farm's address, as http://HOST:PORT."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="FARM_TOKEN", help="A token of scope admin; a file is safer.", metavar="T"
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="FARM_TOKEN_FILE", help="A file with the token."),
]
DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="FARM_DATA_DIR",
        help="Where a farm on this machine keeps its data.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]

DEFAULT_DATA_DIR = Path(".farm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """Where the farm is and what opens it."""

    url: str
    token: str


def find(url: str | None, token: str | None, token_file: Path | None, data_dir: Path) -> Farm:
    """Return the farm to talk to: what was told wins over what lies in the data directory.

    Raises:
        CommandError: With `NO_FARM`, saying what was missing; with `USAGE` for a wrong address.
    """
    if url and not url.startswith(("http://", "https://")):
        raise CommandError(f"{url} is no address of a farm: write http://HOST:PORT", ExitCode.USAGE)
    return Farm(url=url or _running_url(data_dir), token=_token(token, token_file, data_dir))


def _running_url(data_dir: Path) -> str:
    path = data_dir / "farm.json"
    try:
        found = json.loads(path.read_text())["url"]
    except FileNotFoundError:
        raise CommandError(
            f"no farm runs in {data_dir}; start one with `farm up`, or say where it is with --url",
            ExitCode.NO_FARM,
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path} can't be read: {error}", ExitCode.NO_FARM) from None
    return str(found)


def _token(token: str | None, token_file: Path | None, data_dir: Path) -> str:
    if token:
        return token
    path = token_file or data_dir / "admin.token"
    try:
        return path.read_text().strip()
    except OSError as error:
        raise CommandError(
            f"no token: {path} can't be read ({error.strerror}); use --token-file or --token",
            ExitCode.NO_FARM,
        ) from None


P = ParamSpec("P")


def farm_command(
    command: Callable[Concatenate[FarmClient, P], Awaitable[ExitCode]],
) -> Callable[..., None]:
    """Turn a coroutine function over a client into a command with the options that find a farm."""
    own = list(inspect.signature(command).parameters.values())[1:]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, kind, default in (
            ("url", Url, None),
            ("token", Token, None),
            ("token_file", TokenFile, None),
            ("data_dir", DataDir, DEFAULT_DATA_DIR),
        )
    ]

    # Typer binds the arguments by the signature that `run` is given below.
    bound = cast("Callable[..., Awaitable[ExitCode]]", command)

    @functools.wraps(command)
    def run(
        *,
        url: str | None,
        token: str | None,
        token_file: Path | None,
        data_dir: Path,
        **arguments: object,
    ) -> None:
        async def talk() -> ExitCode:
            farm = find(url, token, token_file, data_dir)
            async with FarmClient(farm.url, farm.token) as client:
                return await bound(client, **arguments)

        running.run(talk())

    del run.__wrapped__  # else the signature would be the command's
    signature = inspect.Signature([*own, *options])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` looks at
    run.__annotations__ = {p.name: p.annotation for p in (*own, *options)}
    return run
