"""A file as it was written: plain values, and the line each of them stands on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.jobs.files.problems import InvalidFileError, Path, Problem, shown

MAX_NODES = 50_000
MAX_DEPTH = 64
MAX_CHARACTERS = 4_000_000
MAX_KEY = 256
_INTEGERS = range(-(2**63), 2**63)

Lines = Mapping[int, Mapping[str | int, int]]
"""Per container (by `id`): the line of each of its entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The values of a file. `lines` is empty where the format has no lines worth naming."""

    value: object
    lines: Lines = field(default_factory=dict)

    def line_of(self, path: Path) -> int | None:
        """Return the line of a place, or of what surrounds it where there is no such place."""
        line: int | None = 1 if self.lines else None
        node = self.value
        for part in path:
            if id(node) not in self.lines or part not in self.lines[id(node)]:
                break
            line = self.lines[id(node)][part]
            node = node[part]  # type: ignore[index]  # has lines, so it is a dict or a list
        return line


def children(node: object) -> list[tuple[str | int, object]]:
    """Return the entries of a container with their keys or positions; of anything else, none."""
    match node:
        case dict():
            return list(node.items())
        case list():
            return list(enumerate(node))
        case _:
            return []


class Repeating(dict[str, object]):
    """An object in which a key was there twice; `key` is that key."""

    key: str = ""


def check_bounds(value: object) -> None:
    """Walk everything, aliases written out, and check that it is JSON of a sane size.

    Raises:
        InvalidFileError: Over 64 levels, 50,000 values or 4,000,000 characters; or with a repeated
            key, or a number or a text that JSON can't carry everywhere.
    """
    nodes, characters = 1, 0
    waiting: list[tuple[Path, object]] = [((), value)]
    while waiting:
        path, node = waiting.pop()
        within = children(node)
        nodes += len(within)
        characters += len(node) if isinstance(node, str) else 0
        if detail := _too_much(nodes, characters):
            raise InvalidFileError(Problem(path=(), detail=detail))
        if len(path) > MAX_DEPTH:
            detail = f"nested deeper than {MAX_DEPTH} levels"
            raise InvalidFileError(Problem(path=path[:MAX_DEPTH], detail=detail))
        if isinstance(node, Repeating):
            detail = f"the key {shown(node.key)} is there twice"
            raise InvalidFileError(Problem(path=(*path, node.key), detail=detail))
        if detail := _unfit(node):
            raise InvalidFileError(Problem(path=path, detail=detail))
        waiting.extend(((*path, key), child) for key, child in within)


def _too_much(nodes: int, characters: int) -> str | None:
    if nodes > MAX_NODES:
        return f"the file has more than {MAX_NODES} values, aliases written out"
    if characters > MAX_CHARACTERS:
        return f"the file has more than {MAX_CHARACTERS} characters, aliases written out"
    return None


def _unfit(node: object) -> str | None:
    match node:
        case bool() | None:
            return None
        case int():
            return None if node in _INTEGERS else "a whole number has at most 64 bits"
        case float():
            return None if math.isfinite(node) else "NaN and infinity are not numbers here"
        case str():
            return _unfit_text(node)
        case dict():
            return next((detail for key in node if (detail := _unfit_key(key))), None)
        case _:
            return None


def _unfit_key(key: str) -> str | None:
    if len(key) > MAX_KEY:
        return f"a key has at most {MAX_KEY} characters"
    return _unfit_text(key)


def _unfit_text(text: str) -> str | None:
    if "\x00" in text:
        return "a text may not contain the character NUL"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "a text may not contain half of a surrogate pair"
    return None
