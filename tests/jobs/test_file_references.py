"""`${params.x}` is filled in on submit; the rest waits for the run, its form checked."""

import json
from typing import Any

import pytest

from farm.errors import InvalidInputError
from farm.jobs.files import JobSpec, ProblemBody, parse
from farm.protocol.steps import Eval, Fill, Goto, Set


def job(text: str, params: dict[str, Any] | None = None) -> JobSpec:
    return parse(text.encode(), content_type="application/yaml", params=params or {})


def problems_of(text: str, params: dict[str, Any] | None = None) -> list[ProblemBody]:
    with pytest.raises(InvalidInputError) as caught:
        job(text, params)
    problems = caught.value.context["problems"]
    assert isinstance(problems, list)
    return problems


def value_of(written: str, params: str = "{}", **given: Any) -> Any:
    text = f"name: a\nparams: {params}\nsteps:\n  - set: {{var: x, value: {written}}}\n"
    (step,) = job(text, given).steps
    assert isinstance(step, Set)
    return step.value


@pytest.mark.parametrize("value", ["text", 12, 1.0, True, None, [1, "a"], {"b": [None]}])
def test_a_reference_alone_keeps_the_type_of_its_value(value: Any) -> None:
    found = value_of('"${params.p}"', json.dumps({"p": value}))
    assert found == value
    assert type(found) is type(value)


def test_inside_a_text_a_value_becomes_text() -> None:
    assert value_of('"a ${params.n} b ${params.t}"', "{n: 2.5, t: true}") == "a 2.5 b true"


def test_a_param_may_be_looked_into() -> None:
    assert value_of('"${params.site.base}/x"', "{site: {base: b}}") == "b/x"


def test_where_a_text_is_wanted_a_number_alone_becomes_one() -> None:
    text = 'name: a\nparams: {n: 2}\nsteps:\n  - fill: {selector: x, value: "${params.n}"}\n'
    (step,) = job(text).steps
    assert step == Fill(selector="x", value="2")


def test_where_a_number_is_wanted_a_number_alone_stays_one() -> None:
    text = 'name: a\nparams: {n: 3}\nretry: {max_attempts: "${params.n}"}\nsteps: [back]\n'
    assert job(text).retry.max_attempts == 3


def test_values_given_on_submit_take_the_place_of_those_declared() -> None:
    text = 'name: a\nparams: {base: x, n: 1}\nsteps:\n  - goto: "${params.base}/"\n'
    spec = job(text, {"base": "http://127.0.0.1:1"})
    assert spec.steps == (Goto(url="http://127.0.0.1:1/"),)
    assert spec.params == {"base": "http://127.0.0.1:1", "n": 1}


@pytest.mark.parametrize(
    ("declared", "given", "meant"),
    [
        ("1", "3", 3),
        ("1", "2.5", 2.5),
        ("true", "false", False),
        ("~", "x", "x"),
        ("~", "3", 3),
        ("'1'", "3", "3"),
        ("1", 4, 4),
        ("[1]", "[a, 2]", ["a", 2]),
        ("{}", '{"a": {"b": 1}}', {"a": {"b": 1}}),
    ],
)
def test_a_text_given_for_a_declared_number_is_read_as_one(
    declared: str, given: object, meant: object
) -> None:
    assert value_of('"${params.p}"', f"{{p: {declared}}}", p=given) == meant


@pytest.mark.parametrize(
    ("declared", "given", "kind"),
    [
        ("1", "abc", "a number"),
        ("1.5", "", "a number"),
        ("1", "true", "a number"),
        ("true", "1", "a truth value"),
        ("false", "yes", "a truth value"),
        ("[1]", "a", "a list"),
        ("[1]", "{", "a list"),
        ("{a: 1}", "[1]", "a mapping"),
    ],
)
def test_a_text_that_is_not_of_the_declared_kind_is_a_problem_at_the_param(
    declared: str, given: str, kind: str
) -> None:
    text = (
        f'name: a\nparams:\n  p: {declared}\nsteps:\n  - set: {{var: x, value: "${{params.p}}"}}\n'
    )
    (found,) = problems_of(text, {"p": given})
    assert (found["pointer"], found["line"]) == ("/params/p", 3)
    assert f"as {kind}" in found["detail"]


def test_a_param_that_is_not_declared_cannot_be_given() -> None:
    (found,) = problems_of("name: a\nparams: {base: x}\nsteps: [back]\n", {"bse": "y"})
    assert (found["pointer"], found["line"], found["nearest"]) == ("/params", 2, "base")


def test_an_unknown_param_is_named_with_its_place_and_the_nearest() -> None:
    text = 'name: a\nparams: {base: x}\nsteps:\n  - goto:\n      url: "${params.bsae}/"\n'
    (found,) = problems_of(text)
    assert (found["pointer"], found["line"], found["nearest"]) == ("/steps/0/goto/url", 5, "base")


@pytest.mark.parametrize(
    "written",
    ["${vars.x}", "a ${vars.x_1} b", "${vars.x.y.0}", "${page.url}", "${page.title}", "$${any} $$"],
)
def test_what_is_known_only_at_run_time_is_left_alone(written: str) -> None:
    assert value_of(f'"{written}"') == written


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("${x}", "neither a param"),
        ("${env.HOME}", "neither a param"),
        ("${page.cookies}", "neither a param"),
        ("${vars.}", "neither a param"),
        ("${}", "neither a param"),
        ("${vars.x", "no closing brace"),
        ("${params.x", "no closing brace"),
    ],
)
def test_any_other_reference_is_a_problem(written: str, words: str) -> None:
    (found,) = problems_of(f'name: a\nsteps:\n  - goto: "{written}"\n')
    assert found["pointer"] == "/steps/0/goto"
    assert words in found["detail"]


def test_a_script_may_have_dollar_braces_of_its_own() -> None:
    text = 'name: a\nparams: {p: 1}\nsteps:\n  - eval: "`${x + 1} ${params.p} ${vars.y}`"\n'
    assert job(text).steps == (Eval(script="`${x + 1} 1 ${vars.y}`"),)


def test_values_are_data_and_never_references() -> None:
    assert value_of('"<${params.p}>"', "{p: x}", p="${vars.secret}") == "<$${vars.secret}>"
    assert value_of('"${params.p}"', "{p: [x]}", p=["${page.url}"]) == ["$${page.url}"]


def test_one_param_may_not_refer_to_another() -> None:
    text = 'name: a\nparams: {a: x, b: "${params.a}/y"}\nsteps: [back]\n'
    (found,) = problems_of(text)
    assert (found["pointer"], found["line"]) == ("/params/b", 2)


def test_a_structure_inside_a_text_is_a_problem() -> None:
    (found,) = problems_of('name: a\nparams: {p: [1]}\nsteps:\n  - goto: "x${params.p}"\n')
    assert "must stand alone" in found["detail"]


def test_the_envelope_takes_params_and_nothing_of_the_run() -> None:
    assert job('name: "list of ${params.p}"\nparams: {p: x}\nsteps: [back]\n').name == "list of x"
    assert job('name: "cost $${x}"\nsteps: [back]\n').name == "cost ${x}"
    (found,) = problems_of('name: "${page.url}"\nsteps: [back]\n')
    assert "only in its steps" in found["detail"]


def test_filling_in_a_long_value_often_is_refused() -> None:
    steps = '  - goto: "${params.p} ${params.p}"\n' * 500
    (found,) = problems_of(f"name: a\nparams: {{p: {'x' * 10_000}}}\nsteps:\n{steps}")
    assert "4000000 characters" in found["detail"]
