"""That the mutation check finds what it should, and lists nothing that is no more."""

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.mutation.__main__ import all_mutants, complaints
from tests.mutation.finding import mutants
from tests.mutation.listed import Equivalent, equivalents, stale
from tests.mutation.running import ROOT, SUITES, Fate, Tree, suite_of

PYTHON = [
    ("a == b", ["a != b"]),
    ("a != b", ["a == b"]),
    ("a is None", ["a is not None"]),
    ("a is  not None", ["a is None"]),
    ("a in b", ["a not in b"]),
    ("a not in b", ["a in b"]),
    ("a < b", ["a >= b", "a <= b"]),
    ("a >= b", ["a < b", "a > b"]),
    ("a < b != c", ["a >= b != c", "a <= b != c", "a < b == c"]),
    ("a and b or c", ["a or b or c", "a and b and c"]),
    ("not(a)", ["(a)"]),
    ("'é' in (f(x)) and y", ["'é' not in (f(x)) and y", "'é' in (f(x)) or y"]),
    ("(a  # is it?\n == b)", ["!= b)"]),
    ("f'{a == b}' if x else '<'", ["f'{a != b}' if x else '<'"]),
    ("'a == b'  # c < d", []),
]
LUA = [
    ("return a ~= b", ["return a == b"]),
    ("return a == b", ["return a ~= b"]),
    ("return a <= b", ["return a > b", "return a < b"]),
    ("return a>b", ["return a<=b", "return a>=b"]),
    ("return not a or b", ["return  a or b", "return not a and b"]),
    ("return 'a < \\' b' .. \"<\" -- a < b", []),
    ("--[[ a < b\n]] return [[c > d]]", []),
    ("local nothing, band = 1", []),
]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [*(("a.py", *each) for each in PYTHON), *(("a.lua", *each) for each in LUA)],
    ids=str,
)
def test_each_comparison_and_connective_is_turned_round_and_nothing_else(
    file: str, text: str, expected: list[str]
) -> None:
    assert [mutant.becomes for mutant in mutants(file, text)] == expected


def test_every_comparison_of_the_core_has_a_mutant_that_is_valid_code() -> None:
    found = [mutant for mutant in all_mutants() if mutant.file.endswith(".py")]
    for file in {mutant.file for mutant in found}:
        mine = [mutant for mutant in found if mutant.file == file]
        text = (ROOT / file).read_text()
        assert len({m.text for m in mine} | {text}) == len(mine) + 1
        operators = sum(
            len(node.ops) if isinstance(node, ast.Compare) else len(node.values) - 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Compare | ast.BoolOp)
        )
        assert len(mine) >= operators
        for mutant in mine:
            ast.parse(mutant.text)


def test_every_file_that_decides_has_mutants_and_a_suite_of_tests_that_are_there() -> None:
    files = {mutant.file for mutant in all_mutants()}
    assert {"farm/core/eligibility.py", "farm/stores/redis/scripts/rules.lua"} <= files
    assert {suite_of(file) for file in files} == set(SUITES)
    for suite in SUITES:
        assert all(list((ROOT / suite.room).glob(pattern)) for pattern in suite.tests)


def test_no_test_of_the_rules_is_in_no_suite() -> None:
    run = {path for one in SUITES for p in one.tests for path in (ROOT / one.room).glob(p)}
    there = {
        path for room in ("core", "stores") for path in (ROOT / "tests" / room).glob("test_*.py")
    }
    others = (
        "test_artifact*.py",
        "test_backlog.py",
        "test_deployments.py",
        "test_identities.py",
        "test_keyring.py",
        "test_ledger*.py",
        "test_migrations.py",
        "test_unwanted.py",
    )
    missing = {path.name for path in there - run}
    assert {name for name in missing if not any(fnmatch(name, p) for p in others)} == set()


def test_what_is_listed_is_there_once_and_has_a_reason() -> None:
    listed = equivalents()
    assert stale(listed, all_mutants()) == []
    assert len({(one.file, one.line, one.becomes) for one in listed}) == len(listed)
    assert all(one.reason.strip() for one in listed)


def test_a_survivor_not_listed_and_a_listed_one_that_is_none_are_complained_of() -> None:
    dead, alive, other = mutants("a.py", "a == b\nc == d\ne == f\n")
    fates = [Fate.KILLED, Fate.SURVIVED, Fate.TIMED_OUT]

    def listed(line: str, becomes: str) -> Equivalent:
        return Equivalent(file="a.py", line=line, becomes=becomes, reason="so")

    right = listed("c == d", "c != d")
    assert complaints([dead, alive, other], fates, [right]) == []
    assert len(complaints([dead, alive, other], fates, [])) == 1
    for wrong in (listed("a == b", "a != b"), listed("e == f", "e != f"), listed("x", "y")):
        assert len(complaints([dead, alive, other], fates, [right, wrong])) == 1


def test_a_mutant_is_killed_by_a_test_or_by_the_clock_and_leaves_the_tree_as_it_was(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path)
    mutant = next(m for m in all_mutants() if m.file == "farm/core/job_states.py")
    assert tree.try_out(mutant, clock_s=60) is Fate.KILLED
    assert tree.try_out(mutant, clock_s=0) is Fate.TIMED_OUT
    assert (tmp_path / mutant.file).read_text() == (ROOT / mutant.file).read_text()
