"""In the page: what people see of a worker in a headed browser, and what they say through it."""

from overlay.builder import (
    COLOURS,
    LISTEN,
    REMOVE,
    SCRIPT,
    WORLD,
    Holder,
    Picture,
    State,
    draw,
    press,
)
from overlay.said import Acted, Control, Placed, Said, Stop, parse

__all__ = [
    "COLOURS",
    "LISTEN",
    "REMOVE",
    "SCRIPT",
    "WORLD",
    "Acted",
    "Control",
    "Holder",
    "Picture",
    "Placed",
    "Said",
    "State",
    "Stop",
    "draw",
    "parse",
    "press",
]
