"""Globs over URLs: `**` any characters, `*` any but a slash, `{a,b}` either; all else literally.

Matched without going back, since the address is the page's: a regular expression of several stars
would take minutes for a long one.
"""

import re

_TOKEN = re.compile(r"\*\*|\*|\{[^{}]*\}|[^*{]+|.", re.DOTALL)
_LONGEST = 16_384
"""A longer address matches nothing."""


def url_matches(glob: str, url: str) -> bool:
    """Tell whether the whole URL is as the glob says; `/path` is that path on any host."""
    rooted = f"*://*{glob}" if glob.startswith("/") else glob
    if len(url) > _LONGEST:
        return False
    ends = {0}
    for token in _TOKEN.findall(rooted):
        ends = _after(token, url, ends)
    return len(url) in ends


def _after(token: str, url: str, ends: set[int]) -> set[int]:
    """Return where a token can end that begins where the one before it ends."""
    if not ends:
        return ends
    match token:
        case "**":
            return set(range(min(ends), len(url) + 1))
        case "*":
            return _without_slash(url, ends)
        case _ if len(token) > 1 and token.startswith("{"):
            texts = token[1:-1].split(",")
        case _:
            texts = [token]
    return {end + len(text) for text in texts for end in ends if url.startswith(text, end)}


def _without_slash(url: str, ends: set[int]) -> set[int]:
    reached: set[int] = set()
    for start in sorted(ends):
        end = start
        while end not in reached:
            reached.add(end)
            if end == len(url) or url[end] == "/":
                break
            end += 1
    return reached
