"""`farm-agent`: run the agent, or look at the machine it would run on."""

import asyncio
import json
from typing import Annotated, Literal, NoReturn

import typer
from pydantic import ValidationError

from agent.config import environment, load
from agent.telemetry import configure_logging
from farm.protocol.variables import UnknownVariableError

Kind = Annotated[
    Literal["browser", "console"] | None,
    typer.Option("--type", help="Work with a browser, or with flows, which are without one."),
]

app = typer.Typer(
    help="Drives Chromium, or runs flows. Settings come from FARM_URL and AGENT_ variables.",
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def default(context: typer.Context, kind: Kind = None) -> None:
    """Run the agent unless a command is given."""
    if context.invoked_subcommand is None:
        run(kind)


@app.command()
def run(kind: Kind = None) -> None:
    """Run the agent until it is stopped or drained; the exit code is 0 then."""
    from agent.main import run as run_agent  # takes long to import

    try:
        ended = asyncio.run(run_agent(load(kind)))
    except (UnknownVariableError, ValidationError, ValueError, OSError) as error:
        _fail(_in_words(error), 2)
    if ended.detail:
        typer.echo(f"farm-agent: {ended.detail}", err=True)
    raise typer.Exit(ended.code)


@app.command()
def doctor(
    *,
    headed: Annotated[bool, typer.Option(help="Look for a browser that shows windows.")] = False,
    install: Annotated[bool, typer.Option(help="Install what is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which browser there is and whether it shows a page; exit code 1 if it does not."""
    from agent.doctor import examine

    configure_logging(level="warning")
    report = asyncio.run(examine(env=environment(), headed=headed, install=install))
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        for line in report.lines():
            typer.echo(line)
    raise typer.Exit(0 if report.ok else 1)


def _in_words(error: Exception) -> str:
    match error:
        case ValidationError():
            return "; ".join(
                f"{_variable(problem['loc'])}: {problem['msg'].removeprefix('Value error, ')}"
                for problem in error.errors()
            )
        case OSError() if error.strerror:
            what = "" if error.filename is None else f"{error.filename}: "
            return f"{what}{error.strerror}"
        case _:
            return str(error)


def _variable(path: tuple[int | str, ...]) -> str:
    """Return what a person calls the setting: the variable that it is read from."""
    first, *inside = map(str, path)
    name = first if first.isupper() else f"AGENT_{first.upper()}"
    return ".".join([name, *inside])


def _fail(text: str, code: int) -> NoReturn:
    typer.echo(f"farm-agent: {text}", err=True)
    raise typer.Exit(code)


def main() -> None:
    """Enter."""
    app()


if __name__ == "__main__":
    main()
