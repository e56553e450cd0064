"""What an `extract` step may ask for: the shape of a record, and how to walk the pages."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from farm.protocol.durations import DurationMs

_ATTRIBUTE = re.compile(r"^(?P<selector>.*?)@(?P<attribute>[A-Za-z_][\w:.-]*)$", re.DOTALL)
_NOT_IN_FIELDS = ("text/", "text=", "aria/", "role=", "label=", "placeholder=", "testid=")


def field_selector(value: str) -> str:
    """Check a selector that is evaluated inside a record.

    Raises:
        ValueError: If it is of a form that only `list` and the acting steps understand.
    """
    if value.strip() == "":
        raise ValueError("a selector may not be empty")
    for prefix in _NOT_IN_FIELDS:
        if value.startswith(prefix):
            raise ValueError(f"inside a record use CSS or xpath/, not {prefix!r}")
    return value


class Strict(BaseModel):
    """Base of everything written by people: a key that is not known is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FieldSpec(Strict):
    """One field of a record. A plain string is `selector` or `selector@attribute`.

    Without `selector` the record's own element is meant. A field is always present in the item;
    what is not found is `default`, or null.
    """

    selector: str | None = None
    """CSS, or `xpath/…`, evaluated inside the record's element."""
    attribute: str | None = None
    """Take this attribute; href, src and action are made absolute."""
    prop: str | None = None
    """Take this DOM property, such as `value`."""
    html: Literal["inner", "outer"] | None = None
    """Take the markup instead of the text."""
    type: Literal["text", "number", "json"] = "text"
    """What the text is turned into; a number that does not parse counts as missing."""
    regex: str | None = None
    """Take the first group, or the whole match, of this Python regular expression."""
    decimal: Literal[".", ","] = "."
    """The decimal mark of a `number`; the other one separates thousands."""
    all: bool = False
    """Take every match, as a list."""
    exists: bool = False
    """Take whether there is a match, as a boolean."""
    count: bool = False
    """Take how many matches there are."""
    value: str | None = None
    """Take this text, after substitution, instead of anything on the page."""
    required: bool = False
    """Fail the attempt with `required_missing` where the field is not found."""
    default: Any = None
    """What a field that is not found is given."""
    fields: dict[str, FieldSpec] | None = None
    """A nested record, inside the first match."""
    list: str | None = None
    """With `fields`: a nested list, one record a match."""
    limit: int | None = Field(default=None, ge=1)
    """With `list` or `all`: at most so many."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        match = _ATTRIBUTE.match(value)
        if match is None or "[@" in value or value.startswith(("xpath/", "//")):
            return {"selector": value}
        return {"selector": match["selector"].strip() or None, "attribute": match["attribute"]}

    @field_validator("selector", "list")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        return None if value is None else field_selector(value)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"not a regular expression: {error}") from None
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> FieldSpec:
        kinds = [
            name
            for name in ("attribute", "prop", "html", "exists", "count", "value", "fields")
            if getattr(self, name) not in (None, False)
        ]
        if len(kinds) > 1:
            raise ValueError(f"{kinds[0]} and {kinds[1]} exclude each other")
        if self.list is not None and self.fields is None:
            raise ValueError("list needs fields")
        if self.all and kinds and kinds[0] in ("exists", "count", "value", "fields"):
            raise ValueError(f"all and {kinds[0]} exclude each other")
        return self


class Paginate(Strict):
    """How to get from one page of results to the next."""

    next: str
    """What leads to the next page; where it is missing or disabled, that was the last."""
    max_pages: int = Field(default=50, ge=1, le=10_000)
    max_items: int | None = Field(default=None, ge=1)
    delay: DurationMs = 0
    """How long to wait before each further page."""


class ExtractSpec(Strict):
    """One record for the page, or with `list` one a match."""

    name: str = Field(default="items", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    """The data set the items go to."""
    list: str | None = None
    """Any selector; one record a match."""
    within: str | None = None
    """Any selector; look only inside its first match."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many records a page."""
    min: int = Field(default=1, ge=0)
    """With `list`: wait until there are at least so many; 0 does not wait."""
    unique_by: Annotated[tuple[str, ...], Field()] = ()
    """Drop records that repeat an earlier one of this attempt in these fields."""
    fields: dict[str, FieldSpec] = Field(min_length=1)
    paginate: Paginate | None = None

    @field_validator("unique_by", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _known_fields(self) -> ExtractSpec:
        for name in self.unique_by:
            if name not in self.fields:
                raise ValueError(f"unique_by names {name!r}, which is not one of the fields")
        return self
