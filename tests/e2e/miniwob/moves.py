"""Steps of a job, and the words of an utterance."""

import re
from typing import Any

from tests.e2e.miniwob.episodes import Play, Seen, Solver, Step

SUBMIT = {"click": "#subbtn"}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)\b")


def click(selector: str, **more: Any) -> Step:
    return {"click": {"selector": selector, **more}}


def drag(selector: str, **more: Any) -> Step:
    return {"drag": {"selector": selector, **more}}


def fill(selector: str, value: object, **more: Any) -> Step:
    return {"fill": {"selector": selector, "value": str(value), **more}}


def press(key: str, selector: str) -> Step:
    return {"press": {"key": key, "selector": selector}}


def exactly(path: str, text: str) -> str:
    """A selector of the elements of an XPath with just this text."""
    assert "'" not in text
    return f"xpath/{path}[normalize-space()='{text}']"


def quoted(seen: Seen) -> list[str]:
    """The parts of the utterance in quotes."""
    return re.findall(r'"([^"]*)"', seen.utterance)


def ordinals(seen: Seen) -> list[int]:
    """The places named in the utterance, the first one being 0."""
    return [int(number) - 1 for number in _ORDINAL.findall(seen.utterance)]


def between(seen: Seen, before: str, after: str) -> str:
    """The words of the utterance between two others."""
    found = re.search(f"{re.escape(before)}(.*){re.escape(after)}", seen.utterance)
    assert found is not None, seen.utterance
    return found[1].strip()


def always(*steps: Step) -> Solver:
    """Solve by steps that do not depend on what is there."""

    def solve() -> Play:
        yield from ()
        return list(steps)

    return solve
