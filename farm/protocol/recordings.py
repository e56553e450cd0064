"""What may be recorded of an attempt beside what its steps keep, and what becomes of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

RECORDS = "records"
"""The key of an agent's metadata that is true where it can record, by the kinds in `EVERYWHERE`."""
RECORDS_VIDEO = "records_video"
"""The same of video, which needs an encoder."""


class RecordingKind(StrEnum):
    """One kind of recording; an attempt has at most one of each."""

    VIDEO = "video"
    TRACE = "trace"
    HAR = "har"
    CONSOLE = "console"
    NETWORK = "network"
    DOM = "dom"


FILES: dict[RecordingKind, tuple[str, str]] = {
    RecordingKind.VIDEO: ("video.webm", "video/webm"),
    RecordingKind.TRACE: ("trace.zip", "application/zip"),
    RecordingKind.HAR: ("network.har", "application/json"),
    RecordingKind.CONSOLE: ("console.jsonl", "application/x-ndjson"),
    RecordingKind.NETWORK: ("network.jsonl", "application/x-ndjson"),
    RecordingKind.DOM: ("dom.mhtml", "multipart/related"),
}
"""The name and the media type of each kind's file."""


class Recording(BaseModel):
    """What an agent is to record of an attempt."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kinds: tuple[RecordingKind, ...] = Field(min_length=1)
    keep: Literal["always", "on_failure"] = "always"
    """`on_failure`: of an attempt that succeeds nothing is handed in."""
    overlay: bool = True
    """In a headed browser the pages show it, and so does what is recorded of them."""
    max_bytes: int = Field(default=128 * 1024 * 1024, ge=1)
    """A recording that has grown to this stops there."""
