"""The parser of what comes back from a page through the overlay.

A page's own scripts can't send any of it, but its process can be taken over, so it is read as if
they could: exactly the messages below, and nothing else.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MAX_CHARACTERS = 300
_RUN = re.compile(r"[\w.-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A person has moved the panel, or made it smaller or larger."""

    x: float = 1.0
    """Where it is in the page's width: 0 is the left edge, 1 the right one."""
    y: float = 0.0
    """Where it is in the page's height: 0 is the top, 1 the bottom."""
    collapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A person wants a run to end."""

    run: str
    """The run that the overlay showed; whatever runs by now may be another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A person wants a run to wait, to go on, or to have its page."""

    run: str
    what: Literal["pause", "resume", "take_over", "hand_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """A person who has control has done something in the page: what kind of thing it was."""

    act: Literal["pointer", "key", "wheel", "touch", "paste", "drop"]


Said = Placed | Stop | Control | Acted


def parse(payload: object) -> Said | None:
    """Return what was said, or None for anything that the overlay does not say."""
    if not isinstance(payload, str) or len(payload) > MAX_CHARACTERS:
        return None
    try:
        message = json.loads(payload, object_pairs_hook=_no_doubles, parse_constant=_nothing)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"kind": "placed", "x": x, "y": y, "collapsed": bool(collapsed)} if len(message) == 4:
            if _is_fraction(x) and _is_fraction(y):
                return Placed(x=float(x), y=float(y), collapsed=collapsed)
        case {"kind": "stop", "run": str(run)} if len(message) == 2:
            if _RUN.fullmatch(run):
                return Stop(run=run)
        case _:
            return _of_control(message)
    return None


def _of_control(message: object) -> Control | Acted | None:
    match message:
        case {
            "kind": "control",
            "run": str(run),
            "what": ("pause" | "resume" | "take_over" | "hand_back") as what,
            **others,
        } if not others and _RUN.fullmatch(run):
            return Control(run=run, what=what)
        case {
            "kind": "acted",
            "act": ("pointer" | "key" | "wheel" | "touch" | "paste" | "drop") as act,
            **others,
        } if not others:
            return Acted(act=act)
        case _:
            return None


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _no_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _nothing(word: str) -> Callable[[], None]:
    raise ValueError(f"{word} is not JSON")
