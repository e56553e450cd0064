"""What a check by pydantic has found, in plain words and not in those of a program's types."""

import re
from collections.abc import Callable
from typing import Any

from pydantic_core import ErrorDetails

from farm.protocol.nearest import nearest

_PATTERNS = {
    r"^[A-Za-z0-9_.-]{1,64}$": "has 1 to 64 of: letters, digits, _ . -",
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": (
        "begins with a letter or digit, then has letters, digits, _ . -, at most 64"
    ),
    r"^[A-Za-z_]\w{0,63}$": "is a letter or _, then letters, digits and _, at most 64",
    r"^[^/\\\x00-\x1f]{1,120}$": "is a file name of at most 120 characters, without / and \\",
    r"^[A-Za-z0-9_]{1,64}/[^/\\\x00-\x1f]{1,120}$": (
        "is a file of the farm: file_…/name, as `farm files put` says it, or job_…/name"
    ),
    r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*$": "is a language tag such as en or en-GB",
    r"^[^\x00-\x1f\x7f]*$": "may not contain line breaks or control characters",
    r"^[\w .-]{1,40}$": "has 1 to 40 of: letters, digits, spaces, _ . -",
    r"^https?://[^/\s]+$": "is an origin such as https://shop.example",
}

_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "json_invalid": lambda ctx: f"is not JSON: {ctx['error']}",
    "string_type": lambda _: "should be a text",
    "int_type": lambda _: "should be a whole number",
    "int_parsing": lambda _: "should be a whole number",
    "int_from_float": lambda _: "should be a whole number",
    "float_type": lambda _: "should be a number",
    "float_parsing": lambda _: "should be a number",
    "finite_number": lambda _: "should be a finite number",
    "bool_type": lambda _: "should be true or false",
    "bool_parsing": lambda _: "should be true or false",
    "dict_type": lambda _: "should be a mapping",
    "model_type": lambda _: "should be a mapping",
    "model_attributes_type": lambda _: "should be a mapping",
    "tuple_type": lambda _: "should be a list",
    "list_type": lambda _: "should be a list",
    "greater_than": lambda ctx: f"should be more than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"should be at least {ctx['ge']}",
    "less_than": lambda ctx: f"should be less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"should be at most {ctx['le']}",
    "string_too_short": lambda _: "may not be empty",
    "string_too_long": lambda ctx: f"has at most {ctx['max_length']} characters",
    "too_short": lambda ctx: f"needs at least {ctx['min_length']} entry",
    "too_long": lambda ctx: f"has at most {ctx['max_length']} entries",
    "string_pattern_mismatch": lambda ctx: _PATTERNS.get(
        ctx["pattern"], f"is not of the form {ctx['pattern']}"
    ),
    "literal_error": lambda ctx: f"should be {ctx['expected']}",
    "enum": lambda ctx: f"should be {ctx['expected']}",
    "value_error": lambda ctx: str(ctx["error"]),
}


def sentence(error: ErrorDetails) -> str:
    """Say what is wrong at the place of an error."""
    make = _SENTENCES.get(error["type"])
    said = make(error.get("ctx", {})) if make else error["msg"]
    if error["type"] == "string_type" and isinstance(error["input"], bool | int | float):
        return f"{said}; put the value in quotes"
    return said


def follows(error: ErrorDetails) -> bool:
    """Whether an error only says again that something further inside was refused.

    Entries that are refused are not counted, so a list of them is called too short.
    """
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def nearest_word(error: ErrorDetails) -> str | None:
    """Return the word that was probably meant, where only some words will do."""
    if error["type"] not in ("literal_error", "enum") or not isinstance(error["input"], str):
        return None
    return nearest(error["input"], re.findall(r"'([^']*)'", str(error.get("ctx", {})["expected"])))
