"""What is no JSON is found, and where."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.eligibility import canonical
from farm.core.json_values import json_flaw


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


FLAWED: dict[str, tuple[Any, str]] = {
    "nan": ({"load": math.nan}, "wanted.load is nan"),
    "infinity": ([0, -math.inf], "wanted[1] is -inf"),
    "a key": ({"a": [{"b": {1: "x"}}]}, "wanted.a[0].b has the key 1"),
    "a key at the top": ({None: 1}, "wanted has the key None"),
    "in a tuple": ((1, {2}), "wanted[1] is of type set"),
    "bytes": ({"a": b""}, "wanted.a is of type bytes"),
    "deep": (nested(101), "[0] is nested too deep"),
    "long": ({"a": 2**10_000}, "wanted.a is a number with too many digits"),
}


@pytest.mark.parametrize(("value", "why"), FLAWED.values(), ids=FLAWED)
def test_the_place_of_what_is_no_json_is_named(value: Any, why: str) -> None:
    assert why in str(json_flaw(value, "wanted"))


def test_what_contains_itself_is_nested_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    assert "too deep" in str(json_flaw(value, "wanted"))


@pytest.mark.parametrize("value", [nested(100), {"a": 2**10_000 - 1}, (1, "x"), {}, ""], ids=type)
def test_what_is_just_json_has_no_flaw(value: Any) -> None:
    assert json_flaw(value, "wanted") is None
    assert canonical(value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=1),
    lambda within: st.lists(within) | st.dictionaries(st.text(), within),
)


@given(values)
def test_there_is_a_flaw_exactly_where_a_strict_writer_of_json_fails(value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        assert json_flaw(value, "wanted") is not None
    else:
        assert json_flaw(value, "wanted") is None
