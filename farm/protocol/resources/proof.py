"""Whether the farm is ready, and what a verification has proved."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field, RootModel

from farm.protocol.resources.words import Resource


class ReadyView(Resource):
    """The self-test's last outcome."""

    ready: bool
    reason: str | None = None
    """Told only to those who have a token."""
    checked_at: AwareDatetime | None = None


PointOutcome = Literal["pass", "fail", "not_proven"]


class PointView(Resource):
    """One point of a verification, settled."""

    kind: Literal["point"] = "point"
    number: int
    """From 1 to 9, as the list of what a deployment's verification proves has them."""
    claim: str
    outcome: PointOutcome
    reason: str | None = None
    """Why it does not pass."""
    evidence: tuple[str, ...]
    """What was done and seen, in order."""
    seconds: float


class VerifyEnd(Resource):
    """The last line of a verification."""

    kind: Literal["end"] = "end"
    left_behind: tuple[str, ...]
    """What could not be taken away again; empty where all was."""
    seconds: float


class VerifyLine(RootModel[PointView | VerifyEnd]):
    """One line of what `POST /v1/verify` answers."""

    root: PointView | VerifyEnd = Field(discriminator="kind")
