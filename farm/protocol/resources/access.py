"""Who may come in, and how."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from farm.protocol.extraction import Strict
from farm.protocol.resources.words import Resource, Scope


class TokenCreate(Strict):
    """Ask for a token."""

    scope: Scope
    name: str = Field(default="", max_length=100)


class TokenCreated(Resource):
    """A new token; `token` is shown this once and kept nowhere."""

    id: str
    scope: Scope
    name: str
    namespace: str
    created_at: AwareDatetime
    token: str


class LiveLinkCreate(Strict):
    """What is to be watched, and how."""

    context: str | None = Field(default=None, max_length=512)
    """The `live` of a worker; None is the wall of all."""
    mode: Literal["view", "control"] = "view"
    name: str = Field(default="viewer", pattern=r"^[\w .-]{1,40}$")
    """What others call whoever comes by this link; it is completed, so that no two have one."""
    lasts_s: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    """None is as the farm is set."""


class LiveLinkCreated(Resource):
    """A link, which is shown this once."""

    path: str
    """To be opened with a browser at the farm's address; secret until `expires_at`."""
    context: str | None
    mode: str
    name: str
    expires_at: AwareDatetime
