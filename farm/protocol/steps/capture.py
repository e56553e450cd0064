"""Verbs that take something from a page."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from farm.protocol.extraction import ExtractSpec
from farm.protocol.steps.step import ArtifactName, StepBase


class Extract(StepBase, ExtractSpec):
    """Take records from the page; see `ExtractSpec`. `name` is the data set."""

    type: Literal["extract"] = "extract"
    name: str = Field(default="items", pattern=r"^[A-Za-z0-9_.-]{1,64}$")


class Screenshot(StepBase):
    """Take a picture of the page or of an element, as an artifact."""

    shorthand = "name"
    type: Literal["screenshot"] = "screenshot"
    name: ArtifactName = "screenshot.png"
    full_page: bool = False
    selector: str | None = Field(default=None, min_length=1)
    format: Literal["png", "jpeg"] = "png"
    quality: int | None = Field(default=None, ge=1, le=100)


class Pdf(StepBase):
    """Print the page to a PDF, as an artifact."""

    shorthand = "name"
    type: Literal["pdf"] = "pdf"
    name: ArtifactName = "page.pdf"
    format: str = "A4"
    landscape: bool = False
    print_background: bool = True


class Html(StepBase):
    """Keep the page's markup, as an artifact."""

    shorthand = "name"
    type: Literal["html"] = "html"
    name: ArtifactName = "page.html"


class Download(StepBase):
    """Keep a file that the page hands out, as an artifact.

    A click or a URL brings it; with neither, one that begins by itself is waited for.
    """

    shorthand = "selector"
    acts = True
    type: Literal["download"] = "download"
    selector: str | None = Field(default=None, min_length=1)
    """What to click."""
    first: bool = False
    nth: int | None = Field(default=None, ge=0)
    url: str | None = Field(default=None, min_length=1)
    """What to open instead."""
    name: ArtifactName | None = None
    """Else the one the page suggests, made safe."""
    max_bytes: int = Field(default=100 * 1024 * 1024, ge=1, le=1 << 40)
    """A larger file is broken off."""

    @model_validator(mode="after")
    def _one_cause(self) -> Download:
        if self.selector is not None and self.url is not None:
            raise ValueError("say selector or url, not both")
        return self
