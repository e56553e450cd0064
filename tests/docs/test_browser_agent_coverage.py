"""Every demand on the browser agent is held by tests that exist, or says what is missing."""

import re

import pytest

from tests.agent.chromium.overlaid import KINDS, SCRIPTED
from tests.docs.coverage import ROOT, TEST, Row, exists, rows
from tests.e2e.hostile.answering import ANSWERING
from tests.e2e.hostile.flooding import FLOODING
from tests.e2e.hostile.going import GOING
from tests.e2e.hostile.stopping import STOPPING

PAGE = ROOT / "docs" / "browser-agent-coverage.md"
DEMANDS = {
    "WT": 14,
    "ID": 7,
    "RY": 9,
    "RC": 9,
    "EH": 18,
    "OV": 27,
    "PT": 11,
    "LV": 9,
    "RE": 7,
    "CO": 9,
    "TE": 7,
    "ME": 10,
    "PR": 14,
}
"""How many there are of each kind: none goes unseen."""
BENCHMARK = re.compile(r"measured: `(tests/benchmarks/\w+\.py)`")
MISSING = re.compile(r"^(open|partly): [^`]+[;.]? ?")
_COUNT = r"(\d+)(?: \(([^)]*)\))?"
HEAD = re.compile(rf"^Open: {_COUNT}\. Partly open: {_COUNT}\.$", re.MULTILINE)


def missing(row: Row) -> str | None:
    """`open` or `partly`, where something is."""
    found = MISSING.match(row.held_by)
    return found[1] if found else None


ROWS = rows(PAGE)


def test_every_demand_of_every_kind_is_there_and_in_order() -> None:
    expected = [f"{kind}-{n}" for kind, most in DEMANDS.items() for n in range(1, most + 1)]
    assert [row.number for row in ROWS] == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_demand_is_held_by_tests_that_exist_or_says_what_is_missing(row: Row) -> None:
    assert row.demand
    tests, figures = TEST.findall(row.held_by), BENCHMARK.findall(row.held_by)
    assert bool(tests or figures) == (missing(row) != "open"), row.number
    rest = MISSING.sub("", BENCHMARK.sub("", TEST.sub("", row.held_by)))
    assert rest.strip(", ") == "", f"{row.number} says besides: {rest}"
    named = TEST.findall(f"{row.held_by} {row.further}")
    assert [f"{path}::{name}" for path, name in named if not exists(path, name)] == []
    run = (ROOT / "Makefile").read_text()
    for path in figures:
        module = path.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
        assert (ROOT / path).is_file()
        assert re.search(rf"-m {re.escape(module)}$", run, re.MULTILINE)


def test_what_is_open_is_said_at_the_head_of_the_page() -> None:
    head = HEAD.search(PAGE.read_text())
    assert head is not None
    for kind, count, named in (("open", head[1], head[2]), ("partly", head[3], head[4])):
        wanted = [row.number for row in ROWS if missing(row) == kind]
        assert (int(count), re.findall(r"[A-Z]{2}-\d+", named or "")) == (len(wanted), wanted)


def test_no_request_of_a_page_is_intercepted() -> None:
    intercepts = re.compile(r"\.route(_web_socket|_from_har)?\(|\"Fetch\.|setRequestInterception")
    sources = (ROOT / "agent").rglob("*.py")
    assert [str(one) for one in sources if intercepts.search(one.read_text())] == []


def test_the_leak_of_the_guard_is_stated() -> None:
    text = (ROOT / "docs" / "interventions.md").read_text()
    (leak,) = re.findall(r"\*\*The leak\.\*\*.*?\n\n", text, re.DOTALL)
    assert len(re.findall(r"\d+ ms", leak)) >= 4


def test_the_overlay_is_judged_on_kinds_of_page_enough() -> None:
    assert len(KINDS) + len(SCRIPTED) >= 20  # besides blank, data, source, error, blob, fullscreen
    wanted = {"strict-csp", "csp-sandbox", "frames", "json", "xml", "xhtml", "svg", "text", "image"}
    assert wanted | {"pdf", "hostile-css", "dark"} <= set(KINDS)
    assert {"document-write", "new-html", "new-body", "dialog"} <= set(SCRIPTED)


def test_there_are_hostile_pages_enough() -> None:
    names = {page.name for page in (*STOPPING, *FLOODING, *GOING, *ANSWERING)}
    assert len(names) >= 40
    assert {"popups", "false-overlay", "origin-private-files", "local-files"} <= names
