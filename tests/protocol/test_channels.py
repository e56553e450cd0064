"""The frames of data channels, and what is said of a tab that people watch."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from farm.protocol import live
from farm.protocol.channels import MAX_HEADER_BYTES, FrameError, pack, unpack


@given(st.text(max_size=2000), st.binary(max_size=2000))
def test_what_is_packed_comes_out_again(header: str, payload: bytes) -> None:
    head, rest = unpack(pack(header, payload))
    assert (head.decode(), bytes(rest)) == (header, payload)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_frame_or_refused(frame: bytes) -> None:
    try:
        head, rest = unpack(frame)
    except FrameError:
        return
    assert frame == len(head).to_bytes(4, "big") + head + bytes(rest)


def test_a_header_that_is_too_long_is_refused_on_both_sides() -> None:
    with pytest.raises(FrameError, match="at most"):
        pack("x" * (MAX_HEADER_BYTES + 1), b"")
    length = MAX_HEADER_BYTES + 1
    with pytest.raises(FrameError, match="at most"):
        unpack(length.to_bytes(4, "big") + b"x" * length)


GARBAGE: list[tuple[TypeAdapter[Any], Any]] = [
    (live.from_viewer, {"op": "input", "act": {"kind": "mouse", "act": "move", "x": 1.1, "y": 0}}),
    (live.from_viewer, {"op": "input", "act": {"kind": "dance"}}),
    (live.from_viewer, {"op": "input", "act": {"kind": "text", "text": "x" * 100_001}}),
    (live.from_viewer, {"op": "input", "act": {"kind": "key", "act": "down", "key": "x" * 33}}),
    (live.from_viewer, {"op": "look", "fps": 1000}),
    (live.from_viewer, {"op": "shown", "seq": 0}),
    (live.from_viewer, {"op": "ask", "action": "format the disk"}),
    (live.from_viewer, {"op": "want"}),
    (live.from_tab, {"op": "frame", "seq": 1, "page_width": 0, "page_height": 1}),
    (live.from_tab, {"op": "closed", "reason": "bored"}),
    (live.to_tab, {"op": "want", "fps": 0}),
]


@pytest.mark.parametrize(("adapter", "message"), GARBAGE)
def test_what_means_nothing_is_refused(adapter: TypeAdapter[Any], message: Any) -> None:
    with pytest.raises(ValidationError):
        adapter.validate_json(json.dumps(message))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_place_is_a_number(number: str) -> None:
    text = f'{{"op":"input","act":{{"kind":"wheel","x":0,"y":0,"dy":{number}}}}}'
    with pytest.raises(ValidationError):
        live.from_viewer.validate_json(text)
