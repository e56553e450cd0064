"""Verbs of the mouse."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from farm.protocol.steps.step import StepBase, Targeted


class Click(Targeted):
    """Click an element."""

    shorthand = "selector"
    acts = True
    type: Literal["click"] = "click"
    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(default=1, ge=1, le=3)
    modifiers: tuple[Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"], ...] = ()
    force: bool = False


class Hover(Targeted):
    """Move the mouse over an element."""

    shorthand = "selector"
    type: Literal["hover"] = "hover"


class Drag(Targeted):
    """Drag an element onto another one, or by so many pixels."""

    acts = True
    type: Literal["drag"] = "drag"
    to: str | None = Field(default=None, min_length=1)
    """A selector of the one element to drop it on."""
    x: int = 0
    y: int = 0

    @model_validator(mode="after")
    def _exactly_one(self) -> Drag:
        if (self.to is None) == (self.x == 0 and self.y == 0):
            raise ValueError("say either to, or x and y")
        return self


class Scroll(StepBase):
    """Scroll by pixels, or to `top`, `bottom` or an element."""

    shorthand = "to"
    type: Literal["scroll"] = "scroll"
    to: str | None = Field(default=None, min_length=1)
    y: int | None = None
    x: int = 0

    @model_validator(mode="after")
    def _exactly_one(self) -> Scroll:
        if (self.to is None) == (self.y is None):
            raise ValueError("say exactly one of to and y")
        return self
