"""Who may come in, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from farm.protocol.extraction import Strict
from farm.protocol.resources.namespaces import NamespaceName
from farm.protocol.resources.words import Resource, Scope

Labels = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    Field(min_length=1, max_length=256),
]


class TokenCreate(Strict):
    """Ask for a token."""

    scope: Scope
    name: str = Field(default="", max_length=100)
    namespaces: tuple[NamespaceName, ...] | None = Field(default=None, min_length=1, max_length=256)
    """What it is for; by default the namespace of who asks. One, where the scope is `admin`."""
    task_queues: Labels | None = None
    """The queues that its agents may serve; by default any."""
    nodes: Labels | None = None
    """Where its agents may say they are; by default anywhere."""
    metadata: dict[str, tuple[Any, ...] | None] | None = Field(default=None, max_length=256)
    """The metadata that its agents may have: each key with the values it may have, null for any.
    By default any metadata."""

    @model_validator(mode="after")
    def _bounds_agents(self) -> Self:
        if self.scope == "agent":
            return self
        if (self.task_queues, self.nodes, self.metadata) != (None, None, None):
            raise ValueError("task_queues, nodes and metadata are of tokens of scope agent")
        if self.namespaces is not None and len(self.namespaces) != 1:
            raise ValueError("a token of scope admin is for one namespace")
        return self


class TokenView(Resource):
    """A token that is not revoked, without its secret."""

    id: str
    scope: Scope
    name: str
    namespace: str
    """That it was made in."""
    namespaces: tuple[str, ...]
    """All that it is for."""
    task_queues: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    metadata: dict[str, tuple[Any, ...] | None] | None = None
    """What its agents may be, as `TokenCreate` says it; null is no bound."""
    created_at: AwareDatetime


class TokenCreated(TokenView):
    """A new token; `token` is shown this once and kept nowhere."""

    token: str


class TokenList(Resource):
    """All that who asks may revoke, the oldest first."""

    items: tuple[TokenView, ...]


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
