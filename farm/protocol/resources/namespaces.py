"""Namespaces, and where their work is done."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from farm.protocol.extraction import Strict
from farm.protocol.resources.words import Resource

NamespaceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
PlacementKind = Literal["unplaced", "prefer", "pinned"]


class PlacementBody(Strict):
    """Where the work of a namespace is to be done."""

    placement: PlacementKind
    """On any node; on `labels` first; or on `labels` only."""
    labels: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        default=(), max_length=256
    )
    """Nodes, as agents name theirs."""

    @model_validator(mode="after")
    def _has_labels_where_they_mean_something(self) -> Self:
        if self.placement == "unplaced" and self.labels:
            raise ValueError("what is unplaced has no labels")
        if self.placement == "prefer" and not self.labels:
            raise ValueError("say which labels are preferred")
        return self


class NamespaceCreate(Strict):
    """Ask for a namespace."""

    name: NamespaceName


class NamespaceView(Resource):
    """One namespace."""

    name: str
    origin: Literal["worker_mint", "start_mint", "explicit", "inferred"]
    """How it came to be: by an agent that serves it, by the farm's start, by somebody, or before
    namespaces were written down."""
    created_at: AwareDatetime
    placement: PlacementKind
    labels: tuple[str, ...]


class NamespaceList(Resource):
    """All that who asks may see."""

    items: tuple[NamespaceView, ...]
