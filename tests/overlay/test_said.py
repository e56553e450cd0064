"""The parser of what a page may say: two messages, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay import Placed, Stop, parse

PLACED = {"kind": "placed", "x": 0.25, "y": 1, "collapsed": True}
STOP = {"kind": "stop", "run": "att_01-2.3"}


def test_the_panel_can_be_placed() -> None:
    assert parse(json.dumps(PLACED)) == Placed(x=0.25, y=1.0, collapsed=True)


def test_a_run_can_be_stopped() -> None:
    assert parse(json.dumps(STOP)) == Stop(run="att_01-2.3")


@pytest.mark.parametrize(
    "message",
    [
        PLACED | {"more": 1},
        PLACED | {"kind": "stop"},
        PLACED | {"kind": "place"},
        PLACED | {"x": -0.01},
        PLACED | {"y": 1.01},
        PLACED | {"x": True},
        PLACED | {"x": "0.5"},
        PLACED | {"x": None},
        PLACED | {"x": 10**200},
        PLACED | {"collapsed": 1},
        {"kind": "placed", "x": 0.25, "y": 1},
        STOP | {"run": ""},
        STOP | {"run": 7},
        STOP | {"run": "a b"},
        STOP | {"run": "a\n"},
        STOP | {"run": "ä"},
        STOP | {"run": "a" * 129},
        STOP | {"more": "x"},
        {"kind": "stop"},
        {"kind": ["stop"], "run": "a"},
        {},
        [],
        None,
        "stop",
    ],
)
def test_what_is_not_exactly_a_message_is_none(message: Any) -> None:
    assert parse(json.dumps(message)) is None


@pytest.mark.parametrize(
    "payload",
    [
        None,
        7,
        b'{"kind":"stop","run":"a"}',
        "",
        "{",
        "[" * 290,
        '{"kind":"placed","x":NaN,"y":0,"collapsed":false}',
        '{"kind":"placed","x":Infinity,"y":0,"collapsed":false}',
        '{"kind":"placed","x":1e999,"y":0,"collapsed":false}',
        '{"kind":"stop","run":"a","run":"b"}',
        '{"kind":"stop","run":"a"} ' + " " * 300,
    ],
)
def test_what_is_not_json_of_a_bearable_size_is_none(payload: object) -> None:
    assert parse(payload) is None


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_text_raises(payload: str) -> None:
    assert parse(payload) is None
