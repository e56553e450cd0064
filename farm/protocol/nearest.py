"""The word that was meant, where one was mistyped."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """Return the known word that looks most like `word`, in whatever case, if any does.

    Args:
        word: What was written; only its first 64 characters count.
        known: What there is.
        alike: How much alike they must be: from 0, anything is, to 1, only the word itself.
    """
    by_look = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word[:64].lower(), by_look, n=1, cutoff=alike)
    return by_look[found[0]] if found else None
