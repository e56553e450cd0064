"""What is told of agents that come, go and drain; each namespace hears it by itself (P16)."""

from enum import StrEnum

from farm.core.model import Client
from farm.stores.ports.cluster_events import ClusterEvents, EventKind


class LeavingReason(StrEnum):
    """Why an agent is there no more; only what is known to be so is said."""

    DISCONNECT = "disconnect"
    """Its link has closed."""
    TIMEOUT = "timeout"
    """It was silent for so long that nothing of it can run any more."""
    DEREGISTERED = "deregistered"
    """It has said goodbye, or was removed."""


class AgentNews:
    """Tells of agents."""

    def __init__(self, events: ClusterEvents) -> None:
        self._events = events

    def disconnected(self, client: Client, reason: LeavingReason) -> None:
        """An agent is there no more."""
        self._tell(EventKind.AGENT_DISCONNECTED, client, reason=reason.value, epoch=client.epoch)

    def draining(self, client: Client, draining: bool, because: str, by: str = "") -> None:
        """An agent takes nothing new, or takes again what there is."""
        self._tell(EventKind.AGENT_DRAINING, client, draining=draining, because=because, by=by)

    def _tell(self, kind: EventKind, client: Client, **data: str | int | bool) -> None:
        for namespace in client.namespaces:
            self._events.publish(kind, namespace, {"client_id": client.client_id, **data})
