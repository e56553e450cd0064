"""Files: what jobs produce, and what they are given."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime

from farm.protocol.resources.words import Resource


class ArtifactView(Resource):
    """One file a job produced."""

    name: str
    """Unique in the job; one safe path segment."""
    size: int
    sha256: str
    media_type: str
    attempt_id: str
    created_at: AwareDatetime
    recording: str | None = None
    """The kind of recording it is; None for a file that a step or a failure has left."""
    state: Literal["pending", "ready", "failed"] = "ready"
    """Only what is ready can be fetched; a recording is pending while its attempt runs."""
    detail: str = ""
    """Why a recording failed, or ended before its attempt did."""


class ArtifactList(Resource):
    """The files of a job, in order."""

    items: tuple[ArtifactView, ...]


class ArtifactStored(Resource):
    """The answer to an upload."""

    name: str
    """As kept; differs from the one asked for where that was unsafe or taken."""


class FileStored(Resource):
    """A file that jobs may give to pages."""

    reference: str
    """What the step `upload` names it by: `file_…/name`."""
    name: str
    """As kept; differs from the one asked for where that was unsafe."""
    size: int
    sha256: str
