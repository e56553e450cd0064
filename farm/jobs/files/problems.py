"""What is wrong with a job file, and where."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypedDict

from farm.errors import InvalidInputError

MAX_PROBLEMS = 20
Path = tuple[str | int, ...]
"""A place in a document: keys and positions, from the top."""


class ProblemBody(TypedDict):
    """A problem as callers get it, in the `problems` of an `InvalidInputError`."""

    pointer: str
    line: int | None
    detail: str
    nearest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; `path` is a place in the file as it was written."""

    path: Path
    detail: str
    nearest: str | None = None
    line: int | None = None


class InvalidFileError(Exception):
    """Raised inside this room where nothing more can be made of a file."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems)
        self.problems = problems


def pointer(path: Path) -> str:
    """Return the JSON Pointer (RFC 6901) of a place; the whole document is the empty text."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def shown(word: object) -> str:
    """Return a word of the file as it may be quoted in a sentence: short, without control marks."""
    text = str(word)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def refusal(
    problems: Iterable[Problem], line_of: Callable[[Path], int | None]
) -> InvalidInputError:
    """Make one error of all problems: at most `MAX_PROBLEMS`, in the order of their lines."""
    bodies: dict[tuple[str, str], ProblemBody] = {}
    for problem in problems:
        body = ProblemBody(
            pointer=pointer(problem.path),
            line=problem.line or line_of(problem.path),
            detail=problem.detail,
            nearest=problem.nearest,
        )
        bodies.setdefault((body["pointer"], body["detail"]), body)
    found = sorted(bodies.values(), key=lambda body: body["line"] or 0)[:MAX_PROBLEMS]
    first = found[0]
    place = first["pointer"] or "the file"
    line = "" if first["line"] is None else f" (line {first['line']})"
    more = "" if len(bodies) == 1 else f" (and {len(bodies) - 1} more)"
    return InvalidInputError(f"{place}{line}: {first['detail']}{more}", problems=found)
