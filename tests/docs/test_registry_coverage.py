"""Every case of the registry is held by tests that exist."""

import re

import pytest

from tests.docs.coverage import ROOT, TEST, exists

PAGE = ROOT / "docs" / "registry-coverage.md"
CASE = re.compile(r"\| (\d+) \|")
ROWS = [line for line in PAGE.read_text().splitlines() if CASE.match(line)]


def number_of(row: str) -> int:
    match = CASE.match(row)
    assert match is not None
    return int(match[1])


def test_the_cases_are_in_order_and_each_is_there_once() -> None:
    numbers = [number_of(row) for row in ROWS]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("row", ROWS, ids=number_of)
def test_a_case_is_held_by_tests_that_exist(row: str) -> None:
    named = TEST.findall(row)
    assert named
    assert [f"{path}::{name}" for path, name in named if not exists(path, name)] == []
