"""A job file and its parameters, as named on the command line."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.exits import ExitCode
from farm.cli.running import CommandError

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A job file, YAML or JSON; - reads stdin.")
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="K=V", help="A value for one of the job's params; repeatable."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSource:
    """The text of a job file."""

    text: bytes
    content_type: str


def read(file: Path) -> JobSource:
    """Read a job file.

    Raises:
        CommandError: With `USAGE`, if it can't be read.
    """
    if str(file) == "-":
        return JobSource(text=sys.stdin.buffer.read(), content_type="application/yaml")
    try:
        text = file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file} can't be read: {error.strerror}", ExitCode.USAGE) from None
    is_json = file.suffix.lower() == ".json"
    return JobSource(text=text, content_type="application/json" if is_json else "application/yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is to be known of a job before it is run."""

    private_hosts: tuple[str, ...]
    """Those its steps name literally."""
    browser: bool
    """It runs in a tab, or may have to."""
    flow: bool
    """It runs in a flow, or first in one."""


def check(source: JobSource, params: Mapping[str, str]) -> Checked:
    """Check a job file as the farm would.

    Raises:
        InvalidInputError: With every place that is wrong.
        TooLargeError: If the file is over the limit.
    """
    from farm.jobs.files import Place, parse, places, private_hosts

    job = parse(source.text, content_type=source.content_type, params=params)
    return Checked(
        private_hosts=tuple(private_hosts(job)),
        browser=Place.TAB in places(job),
        flow=Place.FLOW in places(job),
    )


def parse_params(given: list[str] | None) -> dict[str, str]:
    """Return the parameters written as `name=value`.

    Raises:
        CommandError: With `USAGE`, if one has no such form.
    """
    params: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"--param {text}: write it as NAME=VALUE", ExitCode.USAGE)
        params[name] = value
    return params
