"""Who has control of a tab while a run is on it, as a table.

A step in progress is never broken off for a person: what they want takes effect between two steps.
"""

from collections.abc import Mapping
from enum import StrEnum


class Holder(StrEnum):
    """Who has control, or is about to have it."""

    AUTOMATION = "automation"
    PAUSING = "pausing"
    """Automation, until the step in progress is over."""
    PAUSED = "paused"
    """Nobody: the next step waits."""
    TAKING_OVER = "taking_over"
    """Automation, until the step in progress is over; then a person."""
    HUMAN = "human"


class Move(StrEnum):
    """What can happen to it."""

    PAUSE = "pause"
    RESUME = "resume"
    TAKE_OVER = "take_over"
    HAND_BACK = "hand_back"
    REACH = "reach"
    """The place between two steps has been reached."""
    ASK = "ask"
    """A step of the job asks for a person."""
    LEAVE = "leave"
    """Whoever has the page, or has asked for it, is gone, and has not handed it back."""
    GIVE_UP = "give_up"
    """The time in which a person was asked for is over."""


class OutOfPlaceError(Exception):
    """A move came that does not follow from the state; nothing has changed."""

    def __init__(self, holder: Holder, move: Move) -> None:
        super().__init__(_because(holder, move))
        self.holder = holder
        self.move = move


CONTROL: Mapping[Holder, Mapping[Move, Holder]] = {
    Holder.AUTOMATION: {
        Move.PAUSE: Holder.PAUSING,
        Move.RESUME: Holder.AUTOMATION,
        Move.TAKE_OVER: Holder.TAKING_OVER,
        Move.REACH: Holder.AUTOMATION,
        Move.ASK: Holder.HUMAN,
    },
    Holder.PAUSING: {
        Move.PAUSE: Holder.PAUSING,
        Move.RESUME: Holder.AUTOMATION,
        Move.TAKE_OVER: Holder.TAKING_OVER,
        Move.REACH: Holder.PAUSED,
        Move.ASK: Holder.HUMAN,
    },
    Holder.PAUSED: {
        Move.PAUSE: Holder.PAUSED,
        Move.RESUME: Holder.AUTOMATION,
        Move.TAKE_OVER: Holder.HUMAN,
    },
    # Who has asked for the page is not pushed aside by a pause, nor by somebody else's resume.
    Holder.TAKING_OVER: {
        Move.TAKE_OVER: Holder.TAKING_OVER,
        Move.HAND_BACK: Holder.AUTOMATION,
        Move.LEAVE: Holder.PAUSING,
        Move.REACH: Holder.HUMAN,
        Move.ASK: Holder.HUMAN,
    },
    Holder.HUMAN: {
        Move.TAKE_OVER: Holder.HUMAN,
        Move.HAND_BACK: Holder.AUTOMATION,
        Move.LEAVE: Holder.PAUSED,
        Move.GIVE_UP: Holder.AUTOMATION,
    },
}

BY_PEOPLE = (Move.PAUSE, Move.RESUME, Move.TAKE_OVER, Move.HAND_BACK)
"""The moves that a person may ask for."""

HELD: frozenset[Holder] = frozenset({Holder.PAUSED, Holder.HUMAN})
"""Where automation does nothing, and the job's time stands still."""


def _because(holder: Holder, move: Move) -> str:
    """Say what stands in the way of a move, and which one of a person's would do instead."""
    known = [one for one in BY_PEOPLE if one in CONTROL[holder]]
    would = " or ".join(_said(one) for one in known)
    return f"{_said(move)} does not follow while control is {_said(holder)}; {would} would"


def _said(word: str) -> str:
    return word.replace("_", " ")


def move(holder: Holder, move: Move) -> Holder:
    """Apply a move, or raise `OutOfPlaceError` and change nothing."""
    try:
        return CONTROL[holder][move]
    except KeyError:
        raise OutOfPlaceError(holder, move) from None
