"""What is sent into a page."""

import json
from typing import Any

import pytest

import overlay
from overlay import COLOURS, Holder, Picture, Placed, State, draw


def shown(picture: Picture, elapsed_s: float = 0.0) -> dict[str, object]:
    expression = draw(picture, elapsed_s=elapsed_s)
    start, end = "globalThis.__tabfarm?.draw(", ")"
    assert expression.startswith(start)
    assert expression.endswith(end)
    found: dict[str, object] = json.loads(expression[len(start) : -len(end)])
    return found


def test_a_picture_is_sent_with_the_time_its_run_has_lasted() -> None:
    picture = Picture(
        worker="W1 · T2", run="att-1", task="job-1", job="books", step=2, steps=7, step_name="goto"
    )
    assert shown(picture, 12.5) == {
        "worker": "W1 · T2",
        "state": "working",
        "holder": "automation",
        "note": "",
        "colour": COLOURS[State.WORKING],
        "run": "att-1",
        "task": "job-1",
        "job": "books",
        "step": 2,
        "steps": 7,
        "step_name": "goto",
        "elapsed_ms": 12_500,
        "live": True,
        "x": 1.0,
        "y": 0.0,
        "collapsed": False,
    }


@pytest.mark.parametrize(
    ("picture", "state"),
    [
        (Picture(worker="W"), State.IDLE),
        (Picture(worker="W", run="a"), State.WORKING),
        (Picture(worker="W", draining=True), State.DRAINING),
        (Picture(worker="W", run="a", draining=True), State.DRAINING),
    ],
)
def test_the_state_follows_from_what_is_known(picture: Picture, state: State) -> None:
    assert picture.state is state


def test_what_outlives_a_run_is_where_the_panel_was_put_and_that_the_agent_drains() -> None:
    placed = Placed(x=0.2, y=0.9, collapsed=True)
    picture = Picture(
        worker="W", draining=True, run="a", job="j", step=3, steps=4, live=False, placed=placed
    )
    assert picture.idle() == Picture(worker="W", draining=True, placed=placed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\tc", "a b c"),
        ("safe\u202eevil", "safe evil"),
        ("\u2028", " "),
        ("x" * 81, "x" * 79 + "…"),
        ("x" * 80, "x" * 80),
        ('"); alert(1); ("', '"); alert(1); ("'),
    ],
)
def test_names_are_shown_as_plain_text_on_one_line(text: str, expected: str) -> None:
    found = shown(Picture(worker="W", run="a", job=text, step_name=text))
    assert (found["job"], found["step_name"]) == (expected, expected)
    assert draw(Picture(worker="W", job=text)).isascii()


@pytest.mark.parametrize(
    ("picture", "state", "note", "live"),
    [
        (
            {"holder": Holder.PAUSING, "by": "anna"},
            "working",
            "pausing after this step by anna",
            False,
        ),
        ({"holder": Holder.PAUSED, "by": "anna"}, "paused", "paused by anna", True),
        ({"holder": Holder.TAKING_OVER}, "working", "taken over after this step", False),
        ({"holder": Holder.HUMAN, "by": "anna"}, "human has control", "taken over by anna", True),
        ({"holder": Holder.HUMAN, "asked": "solve it"}, "human has control", "solve it", True),
        ({"holder": Holder.HUMAN, "draining": True}, "human has control", "taken over", True),
        ({"message": "bert: hello"}, "working", "bert: hello", False),
        (
            {"holder": Holder.PAUSED, "message": "bert: hello"},
            "paused",
            "paused · bert: hello",
            True,
        ),
    ],
)
def test_who_has_control_is_shown_and_when_its_controls_are_in_nobodys_way(
    picture: dict[str, Any], state: str, note: str, live: bool
) -> None:
    found = shown(Picture(worker="W", run="a", live=False, **picture))
    assert (found["state"], found["note"], found["live"]) == (state, note, live)


def test_a_press_on_the_screen_is_sent_as_numbers() -> None:
    expression = overlay.press(key=False, x=1, y=2, width=3, height=4)
    place = '{"key": false, "x": 1, "y": 2, "width": 3, "height": 4}'
    assert expression == f"globalThis.__tabfarm?.press({place})"


def test_every_state_has_a_colour_that_bears_white_text_and_is_seen_on_white_and_black() -> None:
    assert set(COLOURS) == set(State)
    for colour in COLOURS.values():
        bright = brightness(colour)
        assert 1.05 / (bright + 0.05) >= 4.5  # the contrast to white that a text needs
        assert (bright + 0.05) / 0.05 >= 3  # and that to black that a shape needs


def brightness(colour: str) -> float:
    """The relative luminance, as the accessibility guidelines define it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_script_is_one_call_with_the_names_it_shares_with_the_agent() -> None:
    assert overlay.SCRIPT.endswith('("__tabfarm")')


def test_a_tab_that_goes_with_its_task_says_so() -> None:
    assert shown(Picture(worker="W", guest=True))["note"] == "this tab closes with its task"
    paused = Picture(worker="W", guest=True, holder=Holder.PAUSED, message="m")
    assert shown(paused)["note"] == "paused · m · this tab closes with its task"
