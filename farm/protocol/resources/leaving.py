"""Agents that are to leave, and what is declared to be rolled out."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from farm.protocol.extraction import Strict
from farm.protocol.resources.words import Resource

DeploymentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]


class DrainBody(Strict):
    """How an agent is to leave."""

    deadline_s: float | None = Field(default=None, ge=0, le=604_800)
    """What still runs after so long is stopped; null is as the farm is set."""


class DrainSelection(DrainBody):
    """Which agents are to leave: all of the namespace, or those that are all that is said."""

    all: bool = False
    deployment: str | None = None
    node: str | None = None
    queue: str | None = None

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        chosen = (self.deployment, self.node, self.queue) != (None, None, None)
        if self.all == chosen:
            raise ValueError("say `all`, or which deployment, node or queue")
        return self


class LeftView(Resource):
    """What became of an agent that was to leave."""

    client_id: str
    outcome: Literal["draining", "deregistered", "disconnected"]
    """`draining`: it was told, and finishes what runs. Else it could not be told, or was to be
    removed, and its link was ended: `deregistered` if it held nothing, and is known no more;
    `disconnected` if it holds something, which stays held until it is back or known to be gone."""


class LeftList(Resource):
    """The agents that were to leave."""

    items: tuple[LeftView, ...]


class DeploymentBody(Strict):
    """What a deployment serves."""

    queues: tuple[str, ...] = Field(default=("default",), max_length=256)


class DeploymentView(Resource):
    """One deployment that is declared."""

    name: str
    queues: tuple[str, ...]
    created_at: AwareDatetime
    updated_at: AwareDatetime
    agents: int
    """So many that name it are present."""


class DeploymentList(Resource):
    """The deployments of the namespace, by name."""

    items: tuple[DeploymentView, ...]
