"""What happens in the farm, as it is told to who follows it."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime

from farm.protocol.resources.pool import AgentView
from farm.protocol.resources.words import Resource


class ClusterSnapshot(Resource):
    """What there is; the events that are told after it have greater numbers than `as_of`."""

    as_of: int
    agents: tuple[AgentView, ...]


class ClusterEventView(Resource):
    """One thing that has happened."""

    seq: int
    """Greater than those of all events before, at whatever coordinator they were told."""
    kind: str
    """Such as `agent_connected`; who does not know one passes over it."""
    at: AwareDatetime
    data: dict[str, Any]


class ClusterGap(Resource):
    """Events are missing after `after`; a snapshot follows."""

    after: int
