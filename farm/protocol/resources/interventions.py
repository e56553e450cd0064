"""What people do about a running job."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from farm.protocol.extraction import Strict
from farm.protocol.resources.jobs import JobView
from farm.protocol.resources.words import Resource


class InterventionBody(Strict):
    """Who intervenes; the body may be left out."""

    by: str | None = Field(default=None, min_length=1, max_length=100)
    """A name for people; by default that of the token."""


class MessageBody(InterventionBody):
    """What people at the browser are to read."""

    text: str = Field(min_length=1, max_length=500)


class ResolveBody(InterventionBody):
    """What an uncertain job is decided to be."""

    as_: Literal["succeeded", "failed", "retry"] = Field(alias="as")


class InterventionView(Resource):
    """What became of an intervention that was applied."""

    id: str
    kind: Literal["pause", "resume", "message", "takeover", "hand_back"]
    by: str
    outcome: Literal["applied"] = "applied"
    job: JobView
    """As it is now; a pause or a take-over takes effect when the step in progress is over."""
