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


COLOURS = {State.IDLE: "#1d5fbf", State.WORKING: "#b3126b", State.DRAINING: "#8a5a00"}
"""Of the frame; each bears white text, and is seen on white and on black."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is to be shown of one worker tab."""

    worker: str
    """Such as `W1 · T1`."""
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
    live: bool = True
    """Whether its controls take clicks; not while a step may point at what lies below."""
    placed: Placed = field(default_factory=Placed)

    @property
    def state(self) -> State:
        """The state in a word."""
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
        "colour": COLOURS[picture.state],
        "run": picture.run,
        "task": _plain(picture.task),
        "job": _plain(picture.job),
        "step": picture.step,
        "steps": picture.steps,
        "step_name": _plain(picture.step_name),
        "elapsed_ms": round(1000 * elapsed_s),
        "live": picture.live,
        "x": picture.placed.x,
        "y": picture.placed.y,
        "collapsed": picture.placed.collapsed,
    }
    return f"globalThis.{_NAME}?.draw({json.dumps(shown)})"


def _plain(text: str) -> str:
    """Return a text on one line, without characters that steer how it is shown, and cut."""
    text = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
