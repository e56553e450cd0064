"""What a hostile page is, and what a job on it may come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.protocol.failures import Reason

SUCCEEDED = "succeeded"
HANGS: frozenset[str] = frozenset({Reason.STEP_TIMEOUT, Reason.JOB_TIMEOUT})
"""The page answers nothing any more."""
FINE: frozenset[str] = frozenset({SUCCEEDED})
"""The page does what it does, and the job goes on all the same."""
SLOW: frozenset[str] = FINE | HANGS | {Reason.NAVIGATION_TIMEOUT, Reason.PAGE_FLOODED}
"""How far the page gets before the clocks end it depends on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One page, by its name; a `script` is run while it is parsed."""

    name: str
    script: str = ""
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    ends: frozenset[str] = FINE
    """`succeeded`, or the reasons of failure that will do."""
    notice: str = ""
    """What the job's history has to say of it."""
    steps: tuple[dict[str, object], ...] = ()
    """Instead of the usual ones; `SITE` is where the pages are, `RAW` what has no manners."""
    heavy: bool = False
    """It takes so much of the machine that nothing runs beside it."""

    @property
    def markup(self) -> str:
        """The document."""
        script = f"<script>{self.script}</script>" if self.script else ""
        return f"<!doctype html><title>{self.name}</title><body>{self.body}{script}"
