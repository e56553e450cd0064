"""Writing a job's records: a table for people, JSON lines and CSV for programs."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from farm.cli import output
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.sdk import FarmClient

_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which records."""

    job_id: str
    attempt: int | Literal["all"] | None = None
    dataset: str | None = None


def attempt(text: str | None) -> int | Literal["all"] | None:
    """Read `--attempt`.

    Raises:
        CommandError: With `USAGE`, if it is neither a number nor `all`.
    """
    if text is None:
        return None
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise CommandError(f"--attempt {text}: a number, or all", ExitCode.USAGE)
    return int(text)


def _items(client: FarmClient, query: Query) -> AsyncIterator[dict[str, Any]]:
    return client.items(query.job_id, query.attempt, query.dataset)


def _csv(client: FarmClient, query: Query) -> AsyncIterator[bytes]:
    return client.items_csv(query.job_id, query.attempt, query.dataset)


async def save(client: FarmClient, query: Query, path: Path, *, as_csv: bool) -> None:
    """Write the records to a file."""
    count = 0
    with path.open("wb") as file:
        if as_csv:
            async for chunk in _csv(client, query):
                file.write(chunk)
        else:
            async for item in _items(client, query):
                file.write((output.to_json(item) + "\n").encode())
                count += 1
    output.say(f"{path} written" if as_csv else f"{path}: {output.counted(count, 'record')}")


async def write_lines(client: FarmClient, query: Query) -> None:
    """Write the records as JSON lines."""
    async for item in _items(client, query):
        output.write(output.to_json(item))


async def write_csv(client: FarmClient, query: Query) -> None:
    """Write the records as CSV; to a terminal without anything it might obey."""
    if not sys.stdout.isatty():
        async for chunk in _csv(client, query):
            sys.stdout.buffer.write(chunk)
        return
    text = b"".join([chunk async for chunk in _csv(client, query)]).decode(errors="replace")
    for line in text.splitlines():
        output.write(output.plain(line))


async def write_table(client: FarmClient, query: Query) -> None:
    """Write the first records as a table, and say where more are."""
    shown: list[dict[str, Any]] = []
    more = 0
    async for item in _items(client, query):
        if len(shown) < _ROWS:
            shown.append(item)
        else:
            more += 1
    columns = list(dict.fromkeys(name for item in shown for name in item))
    if not shown:
        output.say("no records")
        return
    output.write_table(columns, ([item.get(name) for name in columns] for item in shown))
    if more:
        output.say(f"… and {more} more; --json or --csv writes all of them")
