"""Where a job may run, and what is said of one that can't be done where it wants to."""

import pytest

from farm.core.model import Namespace
from farm.errors import InvalidInputError
from farm.jobs.files import (
    JobSpec,
    Place,
    falls_back_to,
    match_key,
    parse,
    place_of,
    places,
)

HERE = Namespace("default")
GOTO = "goto: https://a.example/"


def job(use: str, *steps: str, more: str = "") -> JobSpec:
    lines = "".join(f"  - {step}\n" for step in steps or (GOTO,))
    text = f"name: a\nbrowser: {use}\n{more}steps:\n{lines}"
    return parse(text.encode(), content_type="application/yaml")


def problems(use: str, *steps: str, more: str = "") -> list[tuple[str, int, str]]:
    with pytest.raises(InvalidInputError) as refused:
        job(use, *steps, more=more)
    found = refused.value.context["problems"]
    assert isinstance(found, tuple | list)
    return [(p["pointer"], p["line"], p["detail"]) for p in found]


@pytest.mark.parametrize(
    ("use", "steps", "expected"),
    [
        ("required", [GOTO], [Place.TAB]),
        ("none", [GOTO], [Place.FLOW]),
        ("auto", [GOTO], [Place.FLOW, Place.TAB]),
        ("{use: auto, locale: de}", [GOTO], [Place.FLOW, Place.TAB]),
        ("auto", [GOTO, 'click: "#a"'], [Place.TAB]),
        ("auto", [GOTO, "wait_for: text/Hello"], [Place.TAB]),
        ("auto", ["goto: {url: https://a.example/, wait_until: networkidle}"], [Place.TAB]),
        ("auto", ["extract: {fields: {a: {prop: offsetTop}}}"], [Place.TAB]),
        ("auto", ["http: https://a.example/"], [Place.FLOW]),
        ("{use: auto, context: reuse}", [GOTO], [Place.TAB]),
        ("{use: auto, viewport: {width: 800, height: 600}}", [GOTO], [Place.TAB]),
    ],
)
def test_a_job_runs_where_it_can(use: str, steps: list[str], expected: list[Place]) -> None:
    assert list(places(job(use, *steps))) == expected


def test_who_asks_for_a_console_agent_gets_a_flow() -> None:
    assert places(job("required", more="requires: {client_type: console}\n")) == (Place.FLOW,)


def test_what_needs_a_browser_is_refused_at_its_place_where_there_is_to_be_none() -> None:
    found = problems("none", GOTO, 'click: "#a"', "extract: {list: text/A, fields: {b: b}}")
    assert [(pointer, line) for pointer, line, _ in found] == [
        ("/steps/1/click", 5),
        ("/steps/2/extract/list", 6),
    ]
    assert found[0][2] == "click needs a browser, and the job says browser: none"


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ("{use: none, timezone: Europe/Oslo}", "/browser/timezone"),
        ("{use: none, context: reuse}", "/browser/context"),
    ],
)
def test_an_option_that_needs_a_browser_is_refused_where_there_is_to_be_none(
    more: str, pointer: str
) -> None:
    ((found, _, _),) = problems(more)
    assert found == pointer


def test_what_flows_alone_do_is_refused_in_a_tab_and_where_something_else_needs_one() -> None:
    ((pointer, _, detail),) = problems("required", "http: https://a.example/")
    assert (pointer, detail) == (
        "/steps/0/http",
        "http is done without a browser: say browser: none, or auto",
    )
    ((pointer, _, detail),) = problems("auto", "http: https://a.example/", 'click: "#a"')
    assert (pointer, detail) == (
        "/steps/0/http",
        "http is done without a browser: but click needs a browser",
    )


def test_the_match_key_tells_where_a_job_that_may_run_in_two_places_is() -> None:
    spec = job("auto")
    flow, tab = match_key(spec, HERE, Place.FLOW), match_key(spec, HERE, Place.TAB)
    assert match_key(spec, HERE) == flow != tab
    assert place_of(spec, HERE, flow) is Place.FLOW
    assert place_of(spec, HERE, tab) is Place.TAB
    assert tab == match_key(job("required"), HERE)
    assert flow == match_key(job("none"), HERE)


def test_only_from_a_flow_and_only_where_both_will_do_a_job_falls_back() -> None:
    assert falls_back_to(job("auto"), Place.FLOW) is Place.TAB
    assert falls_back_to(job("auto"), Place.TAB) is None
    assert falls_back_to(job("none"), Place.FLOW) is None
    assert falls_back_to(job("required"), Place.TAB) is None
