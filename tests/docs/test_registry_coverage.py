"""Every case of the registry of connected agents is held by tests that exist."""

import re

from tests.docs.coverage import ROOT, TEST, exists

PAGE = (ROOT / "docs" / "registry-coverage.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)


def test_the_cases_are_in_order() -> None:
    numbers = [int(number) for number, _, _ in ROWS]
    assert numbers
    assert numbers == sorted(set(numbers))


def test_every_test_that_is_named_exists() -> None:
    named = TEST.findall(PAGE)
    assert named
    assert [f"{path}::{name}" for path, name in named if not exists(path, name)] == []


def test_every_case_is_held_by_a_test_or_says_why_not() -> None:
    silent = [n for n, _, held in ROWS if not TEST.findall(held) and "left out: " not in held]
    assert silent == []
