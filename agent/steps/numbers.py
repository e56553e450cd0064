"""Numbers as pages write them: `EUR 1,109.50`, `1.109,50 €`, `12 500`, `-3`. Pure."""

import re
from typing import Literal

MAX_DIGITS = 300
_SPACES = " \u00a0\u2009\u202f"
_MINUS = "-\u2212"


def _pattern(mark: str) -> re.Pattern[str]:
    """Match the first number of a text, together with whatever sticks to it.

    Groups of thousands are parted by the other mark, a space or an apostrophe, always the same
    one. `junk` holds a further mark with digits: then the whole is not a number of this notation.
    """
    other = "," if mark == "." else "."
    parted = rf"\d{{1,3}}(?:(?P<by>[{_SPACES}'\u2019])\d{{3}}(?:(?P=by)\d{{3}})*(?!\d))"
    grouped = rf"\d{{1,3}}(?:{re.escape(other)}\d{{2,3}})*{re.escape(other)}\d{{3}}(?!\d)"
    return re.compile(
        rf"(?P<sign>(?<![\w.,])[{_MINUS}][{_SPACES}]?|)"
        rf"(?P<whole>{grouped}|{parted}|\d+|(?={re.escape(mark)}\d))"
        rf"(?P<part>{re.escape(mark)}\d+)?"
        rf"(?P<junk>(?:[.,]\d+)+)?"
    )


_PATTERNS = {".": _pattern("."), ",": _pattern(",")}


def parse_number(text: str, decimal: Literal[".", ","] = ".") -> int | float | None:
    """Return the first number in a text, or None.

    A number that only makes sense with the other decimal mark (`1,23` where the mark is `.`) is
    none, rather than a wrong one.

    Args:
        text: What the page says, currency and words included.
        decimal: The decimal mark; the other one separates thousands.
    """
    found = _PATTERNS[decimal].search(text)
    if found is None or found["junk"] is not None:
        return None
    whole = re.sub(r"\D", "", found["whole"])
    part = (found["part"] or "")[1:]
    if len(whole) + len(part) > MAX_DIGITS:
        return None
    sign = -1 if found["sign"] else 1
    return sign * (float(f"{whole or 0}.{part}") if part else int(whole))
