"""The parser of what a page may say: four messages, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay import Acted, Control, Placed, Stop, parse

PLACED = {"kind": "placed", "x": 0.25, "y": 1, "collapsed": True}
CONTROL = {"kind": "control", "run": "a", "what": "take_over"}
ACTED = {"kind": "acted", "act": "key"}
STOP = {"kind": "stop", "run": "att_01-2.3"}


def test_the_panel_can_be_placed() -> None:
    assert parse(json.dumps(PLACED)) == Placed(x=0.25, y=1.0, collapsed=True)


def test_a_run_can_be_stopped() -> None:
    assert parse(json.dumps(STOP)) == Stop(run="att_01-2.3")


@pytest.mark.parametrize("what", ["pause", "resume", "take_over", "hand_back"])
def test_a_run_can_be_held_and_let_go_on(what: str) -> None:
    said = parse(json.dumps(CONTROL | {"what": what}))
    assert isinstance(said, Control)
    assert (said.run, said.what) == ("a", what)


@pytest.mark.parametrize("act", ["pointer", "key", "wheel", "touch", "paste", "drop"])
def test_what_kind_of_thing_a_person_does_can_be_told(act: str) -> None:
    said = parse(json.dumps(ACTED | {"act": act}))
    assert isinstance(said, Acted)
    assert said.act == act


@pytest.mark.parametrize(
    "message",
    [
        CONTROL | {"what": "stop"},
        CONTROL | {"run": "a b"},
        CONTROL | {"by": "x"},
        CONTROL | {"what": ["pause"]},
        {"kind": "control", "what": "pause"},
        ACTED | {"act": "secret"},
        ACTED | {"text": "secret"},
        {"kind": "acted"},
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
