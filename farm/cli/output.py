"""Data goes to stdout, talk to stderr; what a page said reaches neither as markup or control."""

import json
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH_OF_A_PIPE = 200
_CELL = 120
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# What JSON may carry as it is, but a terminal might obey.
_UNSAFE_IN_JSON = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: object, *, limit: int | None = None) -> str:
    """Return text on one line without control characters, cut to `limit` characters.

    Escape sequences lose what makes them so; what is left of them is harmless letters.
    """
    clean = "".join(
        " " if character.isspace() else character
        for character in str(text)
        if character.isspace() or not _is_control(character)
    )
    if limit is not None and len(clean) > limit:
        return clean[: limit - 1] + "…"
    return clean


def counted(number: int, what: str) -> str:
    """Return `1 file` or `2 files`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _REORDERING


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return JSON that a terminal can be shown: what it might obey is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def of_models(models: BaseModel | Iterable[BaseModel]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value of one resource or of many."""
    if isinstance(models, BaseModel):
        return models.model_dump(mode="json", by_alias=True)
    return [model.model_dump(mode="json", by_alias=True) for model in models]


def write(text: str) -> None:
    """Write one line of data."""
    sys.stdout.write(text + "\n")


def write_json(value: object) -> None:
    """Write one JSON document as data, indented."""
    write(to_json(value, indent=2))


def flush() -> None:
    """Hand over all data written so far; raises where nobody reads it any more."""
    sys.stdout.flush()


def talk() -> Console:
    """Return a console on the stderr of now."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def say(text: str, *, style: str | None = None) -> None:
    """Say something to the person, on stderr."""
    talk().print(Text(plain(text), style=style or ""), soft_wrap=True)


def complain(text: str) -> None:
    """Say what went wrong, on stderr, in as many lines as it has."""
    first, *more = text.splitlines() or [""]
    talk().print(Text("error: ", style="bold red") + Text(plain(first)), soft_wrap=True)
    for line in more:
        say(f"  {line}")


def write_models(
    models: BaseModel | Iterable[BaseModel],
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    as_json: bool,
    whole: Collection[str] = (),
) -> None:
    """Write resources as data: all there is of them as JSON, or what fits as a table."""
    if as_json:
        write_json(of_models(models))
    else:
        write_table(columns, rows, whole=whole)


def write_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    whole: Collection[str] = (),
    limit: int | None = _CELL,
) -> None:
    """Write a table as data; a pipe gets wide lines rather than broken ones.

    The columns named in `whole` are never broken, for what is in them is to be copied. Longer cells
    than `limit` are cut.
    """
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_A_PIPE
    console.print(build_table(columns, rows, whole=whole, limit=limit))


def build_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    whole: Collection[str] = (),
    limit: int | None = _CELL,
) -> Table:
    """Build a table of cells that can't be markup."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(Text(plain(column)), overflow="fold", no_wrap=column in whole)
    for row in rows:
        table.add_row(*(Text(cell(value, limit)) for value in row))
    return table


def cell(value: object, limit: int | None = _CELL) -> str:
    """Return what a table shows for a value."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple() if all(isinstance(part, str) for part in value):
            return plain(", ".join(value), limit=limit)
        case Mapping() | list() | tuple():
            return plain(json.dumps(value, ensure_ascii=False, default=str), limit=limit)
        case _:
            return plain(value, limit=limit)
