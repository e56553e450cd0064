"""From what the page gave to the values of a record, without a page."""

from typing import Any

import pytest

from agent.steps.failures import StepFailed
from agent.steps.records import Reader, compile_fields, target_of
from farm.protocol.extraction import FieldSpec
from farm.protocol.failures import Reason


def read(raw: object, **spec: Any) -> object:
    reader = Reader(fields={"f": FieldSpec.model_validate(spec)}, resolve=lambda text: text)
    return reader.item([raw], 0)["f"]


@pytest.mark.parametrize(
    ("raw", "spec", "wanted"),
    [
        ("  a \n b ", {"selector": "p"}, "a b"),
        ("  a  b ", {"attribute": "x"}, "  a  b "),
        (None, {"selector": "p"}, None),
        (None, {"selector": "p", "default": 0}, 0),
        ("", {"selector": "p", "required": True}, ""),
        ("no", {"selector": "p", "type": "number", "default": -1}, -1),
        ("No. 12 of", {"selector": "p", "regex": "[0-9]+", "type": "number"}, 12),
        ("a=1", {"selector": "p", "regex": "a=(.)"}, "1"),
        ("a=", {"selector": "p", "regex": "a=(.)?"}, None),
        (["1", "x", None, "3"], {"selector": "p", "all": True, "type": "number"}, [1, 3]),
        ([], {"selector": "p", "all": True}, []),
        ([], {"selector": "p", "all": True, "default": None}, None),
        ('{"a": 1}', {"selector": "p", "type": "json"}, {"a": 1}),
        ("NaN", {"selector": "p", "type": "json"}, None),
        (True, {"prop": "checked"}, True),
        (2.0, {"prop": "n"}, 2),
        (None, {"value": "7", "type": "number"}, 7),
        (False, {"selector": "p", "exists": True, "required": True}, False),
        (0, {"selector": "p", "count": True}, 0),
        ([["1"]], {"list": "p", "fields": {"n": {"type": "number"}}}, [{"n": 1}]),
        (None, {"selector": "p", "fields": {"n": "b"}}, None),
        (None, {"selector": "p", "fields": {"n": {"selector": "b", "required": True}}}, None),
    ],
)
def test_a_field_is_read_as_its_spec_says(
    raw: object, spec: dict[str, Any], wanted: object
) -> None:
    assert read(raw, **spec) == wanted


@pytest.mark.parametrize(
    ("raw", "spec", "path"),
    [
        (None, {"selector": "p", "required": True}, "f"),
        ([], {"selector": "p", "all": True, "required": True}, "f"),
        ([], {"list": "p", "required": True, "fields": {"n": "b"}}, "f"),
        (
            [["1"], [None]],
            {"list": "p", "fields": {"n": {"selector": "b", "required": True}}},
            "f[1].n",
        ),
    ],
)
def test_what_is_required_and_missing_is_named(
    raw: object, spec: dict[str, Any], path: str
) -> None:
    with pytest.raises(StepFailed) as caught:
        read(raw, **spec)
    assert caught.value.reason is Reason.REQUIRED_MISSING
    assert caught.value.detail == f"{path} is missing in record 0"


@pytest.mark.parametrize("raw", [{"a": 1}, ["x"], object()])
def test_an_answer_of_another_shape_is_refused(raw: object) -> None:
    with pytest.raises(StepFailed) as caught:
        read(raw, selector="p")
    assert caught.value.reason is Reason.SCRIPT_ERROR


@pytest.mark.parametrize(
    ("selector", "xpath", "text"),
    [
        ("h3 a", False, "h3 a"),
        ("css/h3", False, "h3"),
        ("css=h3", False, "h3"),
        ("pierce/h3", False, "h3"),
        ("> a", False, ":scope > a"),
        ("+ a", False, ":scope + a"),
        ("xpath/.//a", True, ".//a"),
        ("xpath=//a", True, "//a"),
        ("//a", True, "//a"),
    ],
)
def test_a_fields_selector_is_css_or_xpath(selector: str, xpath: bool, text: str) -> None:
    assert target_of(selector) == {"xpath": xpath, "text": text, "written": selector}


def test_fields_are_compiled_in_their_order_with_their_paths() -> None:
    fields = {
        "a": FieldSpec.model_validate("p@href"),
        "b": FieldSpec.model_validate({"selector": "i", "fields": {"c": {"prop": "value"}}}),
    }
    first, second = compile_fields(fields)
    assert (first["path"], first["kind"], first["name"]) == ("a", "attribute", "href")
    assert (second["path"], second["kind"]) == ("b", "fields")
    assert second["fields"][0]["path"] == "b.c"


def test_a_pattern_that_takes_for_ever_on_what_a_page_says_fails_the_step() -> None:
    with pytest.raises(StepFailed) as failed:
        read("a" * 5_000 + "!", selector="p", regex="((a|aa)+)+$")
    assert failed.value.reason is Reason.VALUE_INVALID
    assert "regex" in failed.value.detail
