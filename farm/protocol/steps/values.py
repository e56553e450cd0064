"""Verbs that run code, ask servers, and keep and compare values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from farm.protocol.steps.step import StepBase


class Eval(StepBase):
    """Run JavaScript in the page; with `var`, keep the value under that name."""

    shorthand = "script"
    acts = True
    type: Literal["eval"] = "eval"
    script: str = Field(min_length=1)
    args: Any = None
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")


Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Requests by these change nothing where they go to."""


class Http(StepBase):
    """Ask a server, beside the page: flows only. Shares the flow's cookies; the page stays.

    The answer is `{status, url, headers, body}`, where the body of JSON is its value.
    """

    shorthand = "url"
    type: Literal["http"] = "http"
    url: str = Field(min_length=1)
    method: Method = "GET"
    headers: dict[str, str] = Field(default={})
    body: str | None = None
    json_body: Any = Field(default=None, alias="json")
    """A value to be sent as JSON, in the place of `body`."""
    expect_status: tuple[int, ...] | None = None
    """Fail with `http_status` unless the answer has one of these; else from 400 on."""
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")

    @field_validator("expect_status", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value

    @field_validator("method", mode="before")
    @classmethod
    def _in_capitals(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_body(self) -> Http:
        if self.body is not None and self.json_body is not None:
            raise ValueError("body and json exclude each other")
        return self


class Activity(StepBase):
    """Run a coroutine that is installed beside the agent: flows only. With `var`, keep its value.

    What it does outside is not known, so it acts unless the step says `effect: none`.
    """

    shorthand = "name"
    acts = True
    type: Literal["activity"] = "activity"
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    """The name of its entry point."""
    args: dict[str, Any] = Field(default={})
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")


class Set(StepBase):
    """Keep a value under a name, for `${vars.name}` in later steps."""

    type: Literal["set"] = "set"
    var: str = Field(pattern=r"^[A-Za-z_]\w{0,63}$")
    value: Any


class Assert(StepBase):
    """Fail with `assertion_failed` unless everything said holds (waits up to the timeout)."""

    shorthand = "selector"
    type: Literal["assert"] = "assert"
    selector: str | None = Field(default=None, min_length=1)
    """Some element matches and is visible."""
    text: str | None = None
    """With a selector: its text contains this; else the page's text does."""
    url: str | None = None
    """A glob the address matches."""
    var: str | None = None
    equals: Any = None
    """With `var`: the value equals this."""
    message: str | None = None

    @model_validator(mode="after")
    def _something(self) -> Assert:
        if all(x is None for x in (self.selector, self.text, self.url, self.var)):
            raise ValueError("say at least one of selector, text, url and var")
        return self
