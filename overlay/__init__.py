"""In the page: what people see of a worker in a headed browser, and what they say through it."""

from overlay.builder import COLOURS, LISTEN, REMOVE, SCRIPT, WORLD, Picture, State, draw
from overlay.said import Placed, Said, Stop, parse

__all__ = [
    "COLOURS",
    "LISTEN",
    "REMOVE",
    "SCRIPT",
    "WORLD",
    "Picture",
    "Placed",
    "Said",
    "State",
    "Stop",
    "draw",
    "parse",
]
