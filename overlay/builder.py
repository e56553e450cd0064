"""What is sent into a page: the script itself, and what it is to show."""

import json
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files

from overlay.said import Placed

WORLD = "tabfarm"
"""The isolated world it runs in."""
MAX_TEXT = 80
"""Longer texts are cut."""
_NAME = "__tabfarm"
_SOURCE = files("overlay").joinpath("overlay.js").read_text(encoding="utf-8").rstrip()

SCRIPT = f"{_SOURCE}({json.dumps(_NAME)})"
"""To be evaluated once in every document; it shows nothing by itself."""
REMOVE = f"globalThis.{_NAME}?.remove()"
"""Takes it out of the page, until it is drawn again."""
LISTEN = f"globalThis.{_NAME}.listen()"
"""Gives a promise of what a person says next; see `overlay.said`."""


class State(StrEnum):
    """What a worker tab is doing, in the word that is shown."""

    IDLE = "idle"
    WORKING = "working"
    DRAINING = "draining"
    PAUSED = "paused"
    HUMAN = "human has control"


class Holder(StrEnum):
    """Who has control of the tab, or is about to have it; as the agent names it."""

    AUTOMATION = "automation"
    PAUSING = "pausing"
    PAUSED = "paused"
    TAKING_OVER = "taking_over"
    HUMAN = "human"


COLOURS = {
    State.IDLE: "#1d5fbf",
    State.WORKING: "#b3126b",
    State.DRAINING: "#8a5a00",
    State.PAUSED: "#6a4fc7",
    State.HUMAN: "#0b7a3b",
}
"""Of the frame; each bears white text, and is seen on white and on black."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is to be shown of one worker tab."""

    worker: str
    """Such as `W1 · T1`."""
    guest: bool = False
    """The tab was opened by a page of the task, or by a person in its window: it goes with it."""
    draining: bool = False
    """Its agent takes nothing new."""
    run: str = ""
    """The id of the run; empty while there is none."""
    task: str = ""
    """Whose work it is, by the farm's name for it."""
    job: str = ""
    step: int = 0
    """Which step runs, counted from 1; 0 before the first."""
    steps: int = 0
    step_name: str = ""
    holder: Holder = Holder.AUTOMATION
    by: str = ""
    """Who has control, or has paused."""
    asked: str = ""
    """What a person is asked to do."""
    message: str = ""
    """What somebody has said to the people who see it."""
    live: bool = True
    """Whether its controls take clicks; not while a step may point at what lies below."""
    placed: Placed = field(default_factory=Placed)

    @property
    def state(self) -> State:
        """The state in a word."""
        if self.holder is Holder.HUMAN:
            return State.HUMAN
        if self.holder is Holder.PAUSED:
            return State.PAUSED
        if self.draining:
            return State.DRAINING
        return State.WORKING if self.run else State.IDLE

    def idle(self) -> "Picture":
        """Return what is to be shown when the run has ended."""
        return Picture(worker=self.worker, draining=self.draining, placed=self.placed)


def draw(picture: Picture, *, elapsed_s: float = 0.0) -> str:
    """Return the expression that shows a picture; the run has lasted for `elapsed_s` seconds."""
    shown = {
        "worker": _plain(picture.worker),
        "state": picture.state,
        "holder": picture.holder,
        "note": _plain(_note(picture)),
        "colour": COLOURS[picture.state],
        "run": picture.run,
        "task": _plain(picture.task),
        "job": _plain(picture.job),
        "step": picture.step,
        "steps": picture.steps,
        "step_name": _plain(picture.step_name),
        "elapsed_ms": round(1000 * elapsed_s),
        # Where nothing is pointed at by the job, the controls are in nobody's way.
        "live": picture.live or picture.holder in (Holder.PAUSED, Holder.HUMAN),
        "x": picture.placed.x,
        "y": picture.placed.y,
        "collapsed": picture.placed.collapsed,
    }
    return f"globalThis.{_NAME}?.draw({json.dumps(shown)})"


def press(*, key: bool, x: int, y: int, width: int, height: int) -> str:
    """Return the expression that does what a press on the screen means.

    Args:
        key: It was the key, which takes over and hands back; else the mouse, on a control or not.
        x: Where the pointer is in the window that the page is in, from its left edge.
        y: And from its top.
        width: Of that window.
        height: Of that window.
    """
    place = {"key": key, "x": x, "y": y, "width": width, "height": height}
    return f"globalThis.{_NAME}?.press({json.dumps(place)})"


GUEST = "this tab closes with its task"
_WORDS = {
    Holder.PAUSING: "pausing after this step",
    Holder.PAUSED: "paused",
    Holder.TAKING_OVER: "taken over after this step",
    Holder.HUMAN: "taken over",
}


def _note(picture: Picture) -> str:
    words = picture.asked or _WORDS.get(picture.holder, "")
    by = f"by {picture.by}" if words and picture.by and not picture.asked else ""
    guest = GUEST if picture.guest else ""
    return " · ".join(filter(None, (" ".join(filter(None, (words, by))), picture.message, guest)))


def _plain(text: str) -> str:
    """Return a text on one line, without characters that steer how it is shown, and cut."""
    text = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
