"""What the bodies are made of."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

JobState = Literal[
    "queued",
    "running",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "uncertain",
]
AttemptState = Literal["running", "succeeded", "failed", "cancelled", "timed_out", "lost"]
Scope = Literal["admin", "agent"]


class Resource(BaseModel):
    """Something the farm tells; unknown keys are ignored, so that older clients survive."""

    model_config = ConfigDict(frozen=True, extra="ignore")
