"""How a point ends that does not pass, and what is seen on the way."""

from dataclasses import dataclass, field


class RefutedError(Exception):
    """The farm did what the point says it never does, or not what it says it does."""


class UnprovenError(Exception):
    """It could not be seen either way; the text says what was missing."""


def demand(kept: bool, otherwise: str) -> None:
    """Raise RefutedError unless a promise is kept."""
    if not kept:
        raise RefutedError(otherwise)


@dataclass(slots=True)
class Seen:
    """The evidence of one point, in order."""

    lines: list[str] = field(default_factory=list)

    def __call__(self, line: str) -> None:
        """Note what was done, and what came of it."""
        self.lines.append(line)
