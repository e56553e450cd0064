"""References in the texts of a step."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.steps.failures import StepFailed
from agent.steps.substitution import has_references, mentions, substitute, substitute_step
from farm.protocol.failures import Reason
from farm.protocol.steps import Eval, Extract, Fill, Goto, Screenshot, Set

NAMES: dict[str, dict[str, Any]] = {
    "vars": {"n": 3, "t": "tea", "on": True, "none": None, "deep": {"list": [{"x": 1}]}},
    "params": {"base": "https://a.example", "some-name": "s"},
    "page": {"url": "https://p.example/"},
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("${vars.n}", 3),
        ("${vars.deep}", {"list": [{"x": 1}]}),
        ("${vars.deep.list.0.x}", 1),
        ("${ vars.n }", 3),
        ("${vars.none}", None),
        ("n=${vars.n} t=${vars.t}", "n=3 t=tea"),
        ("${vars.on}${vars.none}", "true"),
        ("${params.base}/x", "https://a.example/x"),
        ("${params.some-name}", "s"),
        ("${page.url}", "https://p.example/"),
        ("$${vars.n}", "${vars.n}"),
        ("cost: $5 {x}", "cost: $5 {x}"),
        ("$$${vars.n}", "$${vars.n}"),
    ],
)
def test_references_are_replaced(text: str, wanted: object) -> None:
    assert substitute(text, NAMES) == wanted


def test_where_only_a_text_will_do_the_value_becomes_one() -> None:
    assert substitute("${vars.n}", NAMES, typed=False) == "3"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("${vars.deeep}", "did you mean ${vars.deep}?"),
        ("${param.base}", "did you mean ${params.base}?"),
        ("${vars.deep.list.9.x}", ""),
        ("${}", "known are"),
        ("${secrets.password}", ""),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(StepFailed) as caught:
        substitute(text, NAMES)
    assert caught.value.reason is Reason.VALUE_INVALID
    assert text in caught.value.detail
    assert near in caught.value.detail


def test_a_script_keeps_what_is_its_own() -> None:
    step = Eval(script="`${x} ${vars.n} $${vars.n}`", args={"n": "${vars.n}"})
    made = substitute_step(step, NAMES)
    assert made.script == "`${x} 3 ${vars.n}`"
    assert made.args == {"n": 3}


def test_a_step_without_references_is_the_very_same() -> None:
    step = Goto(url="https://a.example/")
    assert not has_references(step)
    assert substitute_step(step, NAMES) is step


def test_any_value_keeps_its_type_and_a_text_stays_one() -> None:
    assert substitute_step(Set(var="x", value=["${vars.n}"]), NAMES).value == [3]
    assert substitute_step(Fill(selector="#i", value="${vars.n}"), NAMES).value == "3"


def test_what_comes_out_is_checked_again() -> None:
    step = Screenshot(name="${params.base}.png")
    with pytest.raises(StepFailed) as caught:
        substitute_step(step, NAMES)
    assert caught.value.reason is Reason.VALUE_INVALID
    assert "name" in caught.value.detail
    empty = Fill(selector="${vars.none}", value="x")
    with pytest.raises(StepFailed):
        substitute_step(empty, NAMES)


def test_selectors_of_fields_are_replaced_but_their_values_wait_for_the_page() -> None:
    step = Extract.model_validate(
        {
            "list": ".${vars.t}",
            "fields": {"a": "#x${vars.n}@href", "b": {"value": "${page.url}"}},
            "paginate": {"next": "#${vars.t}"},
        }
    )
    made = substitute_step(step, NAMES)
    assert made.list == ".tea"
    assert made.fields["a"].selector == "#x3"
    assert made.fields["b"].value == "${page.url}"
    assert made.paginate is not None
    assert made.paginate.next == "#tea"


def test_a_mention_is_seen_wherever_it_is() -> None:
    assert mentions(Set(var="x", value={"a": ["${page.title}"]}), "page.title")
    assert not mentions(Set(var="x", value="page.title"), "page.title")


@given(st.text())
def test_a_text_without_references_is_never_changed(text: str) -> None:
    if "${" not in text:
        assert substitute(text, NAMES) == text


@given(st.text())
def test_doubling_the_dollar_makes_any_text_literal(text: str) -> None:
    assert substitute(text.replace("${", "$${"), {"vars": {}}) == text
