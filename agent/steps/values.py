"""Values that come out of a page, made fit for JSON and for the wire."""

import json
import math
from datetime import datetime

MAX_DEPTH = 64
"""Deeper nesting, cycles included, is refused."""


def to_json_value(value: object, depth: int = 0) -> object:
    """Return a value as JSON knows it; a date becomes its ISO text.

    Raises:
        ValueError: If some part has no JSON form; says which kind.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels, or containing itself")
    match value:
        case None | bool() | int():
            return value
        case str():
            return well_formed(value)
        case float() if math.isfinite(value):
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        case datetime():
            return value.isoformat()
        case list() | tuple():
            return [to_json_value(item, depth + 1) for item in value]
        case dict():
            return {
                well_formed(str(k)): to_json_value(item, depth + 1) for k, item in value.items()
            }
        case _:
            raise ValueError(f"a {type(value).__name__} ({value!s:.80}) has no JSON form")


def well_formed(text: str) -> str:
    """Return a text with halves of surrogate pairs, which UTF-8 cannot say, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def canonical(value: object) -> str:
    """Return the one JSON text of a value, for comparing: types count, order of keys does not."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_text(value: object) -> str:
    """Return a value as it reads inside a text: itself if a text, nothing for null, else JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
        case _:
            return canonical(value)
