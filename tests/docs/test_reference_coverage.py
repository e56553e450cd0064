"""Every demand is held by tests that exist, or is open and says so."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference-coverage.md"
TEST_ID = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    number: str
    demand: str
    held_by: str
    further: str


def rows() -> list[Row]:
    found = []
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| [A-Z]{2}-\d+ \|", line):
            number, demand, held_by, further = (c.strip() for c in line.strip("|").split("|"))
            found.append(Row(number=number, demand=demand, held_by=held_by, further=further))
    return found


ROWS = rows()


def _exists(path: str, name: str) -> bool:
    file = ROOT / path
    definition = re.compile(rf"^(async )?def {name}\(", re.MULTILINE)
    return file.is_file() and definition.search(file.read_text()) is not None


def test_the_numbers_of_each_page_are_complete_and_in_order() -> None:
    for page in ("WP", "MS", "LD"):
        numbers = [int(row.number[3:]) for row in ROWS if row.number.startswith(page)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers
    assert {row.number[:2] for row in ROWS} == {"WP", "MS", "LD"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_demand_is_held_by_tests_that_exist_or_says_what_is_open(row: Row) -> None:
    assert row.demand
    tests = TEST_ID.findall(row.held_by)
    if row.held_by.startswith("open: "):
        assert tests == []
    else:
        assert tests, f"{row.number} names no test"
        assert TEST_ID.sub("", row.held_by).strip(", ") == ""
    named = TEST_ID.findall(f"{row.held_by} {row.further}")
    missing = [f"{path}::{name}" for path, name in named if not _exists(path, name)]
    assert missing == []


def test_nothing_is_open() -> None:
    assert [row.number for row in ROWS if row.held_by.startswith("open: ")] == []
