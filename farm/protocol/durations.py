"""Durations as people write them: `800` (milliseconds), `"10s"`, `"1.5m"`, `"2h"`."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

_FORM = re.compile(r"^\s*(\d{1,12}(?:\.\d{1,12})?)\s*(ms|s|m|h|d)\s*$")
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def to_milliseconds(value: object) -> object:
    """Turn a duration as written into whole milliseconds.

    Numbers are milliseconds already and pass unchanged, for pydantic to check.

    Raises:
        ValueError: If a text has no such form.
    """
    if not isinstance(value, str):
        return value
    match = _FORM.match(value)
    if match is None:
        raise ValueError("a duration is a number of milliseconds or a text such as '10s' or '2m'")
    return round(float(match[1]) * _MS[match[2]])


DurationMs = Annotated[
    int, Field(ge=0, le=7 * 86_400_000, strict=True), BeforeValidator(to_milliseconds)
]
"""Whole milliseconds, written as a number of them or with a unit."""
