"""Every case of the registry that the page tells of is held by tests that exist."""

import re

from tests.docs.coverage import ROOT, TEST, exists

PAGE = ROOT / "docs" / "registry-coverage.md"
CASE = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_cases_are_in_order_and_each_is_told_of_once() -> None:
    numbers = [int(number) for number, _, _ in CASE.findall(PAGE.read_text())]
    assert numbers
    assert numbers == sorted(set(numbers))


def test_every_case_names_tests_and_these_exist() -> None:
    for number, _, held_by in CASE.findall(PAGE.read_text()):
        tests = TEST.findall(held_by)
        assert tests or held_by.startswith("none: "), f"case {number} names no test"
        assert [f"{path}::{name}" for path, name in tests if not exists(path, name)] == []
