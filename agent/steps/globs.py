"""Globs over URLs: `**` any characters, `*` any but a slash, `{a,b}` either; all else literally."""

import re
from functools import lru_cache

_TOKEN = re.compile(r"\*\*|\*|\{[^{}]*\}|.", re.DOTALL)


@lru_cache(maxsize=256)
def url_pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern whole URLs must match; `/path` stands for that path on any host."""
    rooted = f"*://*{glob}" if glob.startswith("/") else glob
    return re.compile("".join(_translate(t) for t in _TOKEN.findall(rooted)) + r"\Z", re.DOTALL)


def _translate(token: str) -> str:
    match token:
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case _ if len(token) > 1:
            return "(?:" + "|".join(re.escape(part) for part in token[1:-1].split(",")) + ")"
        case _:
            return re.escape(token)
