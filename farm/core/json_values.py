"""What is a value of JSON, and where one that is none has what is not."""

from collections.abc import Iterable
from math import isfinite

_DEEPEST, _MOST_BITS = 100, 10_000


def json_flaw(value: object, place: str) -> str | None:
    """Say where a value that is called `place` is none of JSON's, and why; None if it is one."""
    return _flaw(value, place, 0)


def _flaw(value: object, place: str, depth: int) -> str | None:
    if depth > _DEEPEST:
        return f"{place} is nested too deep"
    match value:
        case None | bool() | str():
            return None
        case int():
            too_long = value.bit_length() > _MOST_BITS
            return f"{place} is a number with too many digits" if too_long else None
        case float():
            return None if isfinite(value) else f"{place} is {value}, which is no number in JSON"
        case dict():
            if strange := [key for key in value if not isinstance(key, str)]:
                return f"{place} has the key {strange[0]!r}, which is no text, as JSON's are"
            return _first(((one, f"{place}.{key}") for key, one in value.items()), depth)
        case list() | tuple():
            return _first(((one, f"{place}[{n}]") for n, one in enumerate(value)), depth)
        case _:
            return f"{place} is of type {type(value).__name__}, which JSON does not have"


def _first(within: Iterable[tuple[object, str]], depth: int) -> str | None:
    flaws = (_flaw(one, place, depth + 1) for one, place in within)
    return next((flaw for flaw in flaws if flaw is not None), None)
