"""What agents say, read; where it can't be understood, what is wrong with it."""

from dataclasses import dataclass

from pydantic import ValidationError

from farm.jobs.files.sentences import sentence
from farm.protocol import messages as wire
from farm.protocol.loose import members_of

_OTHERWISE = {
    "missing": "is missing",
    "union_tag_invalid": "op is none that is known here",
    "union_tag_not_found": "op is missing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A message that can't be understood."""

    op: str | None
    """What it says it is; None if it says nothing."""
    problems: int
    first: str
    """Where the first of them is, and what would be right; nothing of what was said there."""


def read(text: str) -> wire.FromAgent | Unreadable:
    """Read a message of an agent."""
    try:
        return wire.from_agent.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        op = members_of(text).get("op")
        place = ".".join(str(part) for part in first["loc"][1:])
        said = _OTHERWISE.get(first["type"]) or sentence(first)
        return Unreadable(
            op=op if isinstance(op, str) else None,
            problems=error.error_count(),
            first=f"{place} {said}" if place else said,
        )
