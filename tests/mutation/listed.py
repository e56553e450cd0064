"""The mutants that no test can see, each with the reason."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.finding import Mutant

_FILE = Path(__file__).with_name("equivalents.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """A mutant that does what the original does; known by its line's text, wherever that stands."""

    file: str
    line: str
    becomes: str
    reason: str

    def is_of(self, mutant: Mutant) -> bool:
        """Tell whether it is this mutant that is meant."""
        mine = (self.file, self.line, self.becomes)
        return mine == (mutant.file, mutant.line, mutant.becomes)


def equivalents() -> list[Equivalent]:
    """Read the list."""
    return [Equivalent(**one) for one in tomllib.loads(_FILE.read_text()).get("equivalent", [])]


def stale(listed: Iterable[Equivalent], those: Iterable[Mutant]) -> list[Equivalent]:
    """Return what is listed and is none of these mutants."""
    those = list(those)
    return [one for one in listed if not any(one.is_of(mutant) for mutant in those)]
