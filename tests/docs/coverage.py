"""Reads the pages that say which tests hold what is asked."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One demand."""

    number: str
    demand: str
    held_by: str
    further: str


def rows(page: Path) -> list[Row]:
    """Return the demands of a page, in order."""
    found = []
    for line in page.read_text().splitlines():
        if re.match(r"\| [A-Z]{2}-\d+ \|", line):
            number, demand, held_by, further = (c.strip() for c in line.strip("|").split("|"))
            found.append(Row(number=number, demand=demand, held_by=held_by, further=further))
    return found


def exists(path: str, name: str) -> bool:
    """Tell whether a file has a test of this name."""
    file = ROOT / path
    definition = re.compile(rf"^ *(async )?def {name}\(", re.MULTILINE)
    return file.is_file() and definition.search(file.read_text()) is not None
