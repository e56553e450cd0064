"""Every demand is held by tests that exist, or is open and says so."""

import pytest

from tests.docs.coverage import ROOT, TEST, Row, exists, rows

PAGE = ROOT / "docs" / "reference-coverage.md"


ROWS = rows(PAGE)


def test_the_numbers_of_each_page_are_complete_and_in_order() -> None:
    for page in ("WP", "MS", "LD"):
        numbers = [int(row.number[3:]) for row in ROWS if row.number.startswith(page)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers
    assert {row.number[:2] for row in ROWS} == {"WP", "MS", "LD"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_demand_is_held_by_tests_that_exist_or_says_what_is_open(row: Row) -> None:
    assert row.demand
    tests = TEST.findall(row.held_by)
    if row.held_by.startswith("open: "):
        assert tests == []
    else:
        assert tests, f"{row.number} names no test"
        assert TEST.sub("", row.held_by).strip(", ") == ""
    named = TEST.findall(f"{row.held_by} {row.further}")
    missing = [f"{path}::{name}" for path, name in named if not exists(path, name)]
    assert missing == []


def test_nothing_is_open() -> None:
    assert [row.number for row in ROWS if row.held_by.startswith("open: ")] == []
