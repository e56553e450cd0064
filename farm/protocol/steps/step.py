"""What every step has."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from farm.protocol.durations import DurationMs
from farm.protocol.extraction import Strict


class Effect(StrEnum):
    """What a step may do to the outside world."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


ArtifactName = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f]{1,120}$")]


class StepBase(Strict):
    """The keys every step may have."""

    shorthand: ClassVar[str | None] = None
    acts: ClassVar[bool] = False

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    name: str | None = Field(default=None, max_length=200)
    timeout: DurationMs | None = None
    """How long this step may take; else the job's step (or navigation) timeout."""
    optional: bool = False
    """A failure of this step is noted and skipped."""
    effect: Effect | None = None
    """What the step may change outside; None is the verb's own default."""


class Targeted(StepBase):
    """A step on one element. A selector that matches two is an error unless `first` or `nth`."""

    selector: str = Field(min_length=1)
    """CSS, `xpath/…`, `text/…`, `aria/…`, `role=…`, or Playwright's own forms."""
    first: bool = False
    nth: int | None = Field(default=None, ge=0)

    @field_validator("selector")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if value.strip() == "" or value.strip() in ("xpath/", "text/", "aria/", "css/", "role="):
            raise ValueError("a selector may not be empty")
        return value
