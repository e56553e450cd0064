"""Verbs of the keyboard, and of fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from farm.protocol.durations import DurationMs
from farm.protocol.steps.step import StepBase, Targeted


class Fill(Targeted):
    """Put a value into a field, replacing what is there; with `submit`, press Enter afterwards."""

    type: Literal["fill"] = "fill"
    value: str
    submit: bool = False


class Type(Targeted):
    """Type a text key by key; a line break presses Enter."""

    type: Literal["type"] = "type"
    text: str
    delay: DurationMs = 0


class Press(StepBase):
    """Press a key or a chord such as `Control+A`, on an element or where the focus is."""

    shorthand = "key"
    acts = True
    type: Literal["press"] = "press"
    key: str = Field(min_length=1)
    selector: str | None = Field(default=None, min_length=1)


class Select(Targeted):
    """Choose options of a `<select>` by value, label or index."""

    acts = True
    type: Literal["select"] = "select"
    value: str | tuple[str, ...] | None = None
    label: str | tuple[str, ...] | None = None
    index: int | tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Select:
        if sum(x is not None for x in (self.value, self.label, self.index)) != 1:
            raise ValueError("say exactly one of value, label and index")
        return self


class Check(Targeted):
    """Tick a checkbox or radio button."""

    shorthand = "selector"
    acts = True
    type: Literal["check"] = "check"


class Uncheck(Targeted):
    """Untick a checkbox."""

    shorthand = "selector"
    acts = True
    type: Literal["uncheck"] = "uncheck"


FileReference = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}/[^/\\\x00-\x1f]{1,120}$")]
"""`file_…/name` for a file handed to the farm, `job_…/name` for the artifact of a job."""


class Upload(Targeted):
    """Put files from the farm's store into a field of the page."""

    acts = True
    type: Literal["upload"] = "upload"
    files: tuple[FileReference, ...] = Field(min_length=1, max_length=100)
    max_bytes: int = Field(default=1 << 30, ge=1, le=1 << 40)
    """A larger file is not fetched."""

    @field_validator("files", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value
