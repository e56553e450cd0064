"""Numbers as pages write them."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.steps.numbers import parse_number


@pytest.mark.parametrize(
    ("text", "decimal", "wanted"),
    [
        ("EUR 1,109.50", ".", 1109.5),
        ("1.109,50 €", ",", 1109.5),
        ("£51.77", ".", 51.77),
        ("12 500 Kč", ".", 12500),
        ("12\u202f500", ",", 12500),
        ("1'234'567.8", ".", 1234567.8),
        ("1,00,000", ".", 100000),
        ("-3", ".", -3),
        ("\u22123.5", ".", -3.5),
        ("$-5.00", ".", -5.0),
        ("model A-3", ".", 3),
        ("3 of 10", ".", 3),
        ("In stock (22 available).", ".", 22),
        ("12.5.", ".", 12.5),
        (".5", ".", 0.5),
        ("1.109", ",", 1109),
        ("1,109", ",", 1.109),
        ("10 - 20", ".", 10),
        ("007", ".", 7),
        ("none", ".", None),
        ("", ".", None),
        ("1,23", ".", None),
        ("1.5", ",", None),
        ("1.2.3", ".", None),
        ("1,234,56", ".", None),
        ("9" * 400, ".", None),
    ],
)
def test_a_number_is_read_or_is_none(
    text: str, decimal: Literal[".", ","], wanted: float | None
) -> None:
    assert parse_number(text, decimal) == wanted


@given(st.integers(-(10**12), 10**12), st.integers(0, 99), st.sampled_from([".", ","]))
def test_what_was_written_with_groups_and_marks_is_read_back(
    whole: int, part: int, decimal: Literal[".", ","]
) -> None:
    text = f"{whole:,}.{part:02}"
    if decimal == ",":
        text = text.translate(str.maketrans(",.", ".,"))
    assert parse_number(f"EUR {text} net", decimal) == float(f"{whole}.{part:02}")


@given(st.text(), st.sampled_from([".", ","]))
def test_no_text_breaks_it(text: str, decimal: Literal[".", ","]) -> None:
    parse_number(text, decimal)
