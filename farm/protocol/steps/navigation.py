"""Verbs that bring another page, or wait for what it is to show."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from farm.protocol.durations import DurationMs
from farm.protocol.steps.step import StepBase

WaitUntil = Literal["load", "domcontentloaded", "commit", "networkidle"]


class Goto(StepBase):
    """Open a URL."""

    shorthand = "url"
    type: Literal["goto"] = "goto"
    url: str = Field(min_length=1)
    wait_until: WaitUntil = "load"
    referer: str | None = None
    expect_status: tuple[int, ...] | None = None
    """Fail with `http_status` unless the answer has one of these."""

    @field_validator("expect_status", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value


class Back(StepBase):
    """Go one page back."""

    type: Literal["back"] = "back"
    wait_until: WaitUntil = "load"


class Reload(StepBase):
    """Load the page again."""

    type: Literal["reload"] = "reload"
    wait_until: WaitUntil = "load"


class WaitFor(StepBase):
    """Wait until an element is in a state, or until so many match."""

    shorthand = "selector"
    type: Literal["wait_for"] = "wait_for"
    selector: str = Field(min_length=1)
    state: Literal["visible", "hidden", "attached", "detached"] = "visible"
    count: int | None = Field(default=None, ge=0)
    operator: Literal[">=", "==", "<="] = ">="


class WaitForUrl(StepBase):
    """Wait until the page's address matches a glob such as `**/account`."""

    shorthand = "url"
    type: Literal["wait_for_url"] = "wait_for_url"
    url: str = Field(min_length=1)


class Wait(StepBase):
    """Wait a while. Prefer `wait_for`."""

    shorthand = "ms"
    type: Literal["wait"] = "wait"
    ms: DurationMs


HUMAN_MS = 1_800_000
"""How long a person is waited for, where the step does not say."""


class Human(StepBase):
    """Ask for a person, let them work in the page, and go on when they hand the tab back."""

    shorthand = "message"
    type: Literal["human"] = "human"
    message: str = Field(min_length=1, max_length=500)
    """What the person is to do."""
