"""What is remembered of agents that have gone: of those that were alike, when the last was seen.

Alike are those that nothing routes work by tells apart. Names of queues, nodes and metadata are
their agents' own, so only the latest are kept.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence

from farm.core.eligibility import canonical
from farm.core.model import Capacity, Client, ClientId, ClientType, Instant, Namespace

MOST = 1_000


def kind_of(client: Client) -> str:
    """Return what work is routed to an agent by, as one text."""
    return f"{client.client_type}:{serving(client)}"


def serving(client: Client) -> str:
    """Return the same without its type, which stays for as long as its browser lives."""
    return canonical(
        {
            "namespaces": list(client.namespaces),
            "task_queue": client.task_queue,
            "activity_types": sorted(client.activity_types),
            "node": client.node,
            "metadata": dict(client.metadata),
        }
    )


def departed(kind: str, seen_at: Instant) -> Client:
    """Return an agent of this kind that has gone, with nothing it had."""
    client_type, _, rest = kind.partition(":")
    known = json.loads(rest)
    return Client(
        client_id=ClientId(""),
        client_type=ClientType(client_type),
        link=None,
        epoch=0,
        instance="",
        namespaces=tuple(Namespace(name) for name in known["namespaces"]),
        task_queue=known["task_queue"],
        activity_types=frozenset(known["activity_types"]),
        node=known["node"],
        metadata=known["metadata"],
        capacity=Capacity(),
        seen_at=seen_at,
    )


class Departures:
    """The latest that have gone, by kind."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: OrderedDict[str, Client] = OrderedDict()
        self._all: Sequence[Client] | None = ()

    def note(self, kind: str, seen_at: Instant) -> None:
        """Remember that one of this kind was last seen then."""
        before = self._found.pop(kind, None)
        at = seen_at if before is None else max(before.seen_at, seen_at)
        self._found[kind] = departed(kind, Instant(at))
        if len(self._found) > self._most:
            self._found.popitem(last=False)
        self._all = None

    def all(self) -> Sequence[Client]:
        """Return one of each kind."""
        if self._all is None:
            self._all = tuple(self._found.values())
        return self._all
