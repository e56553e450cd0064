"""The placements of namespaces, read now and then."""

from farm.clock import Clock
from farm.core.model import Namespace, Request
from farm.core.tiers import NodePlacement, Tier, Unplaced, tiers
from farm.manager.kept import Kept
from farm.stores.ports.placements import PlacementReader


class Placements:
    """What was last read of each namespace.

    A pinned namespace stays so while its placement can't be read: the last known one goes on, and
    where none is known its work waits. It is never taken for unplaced.
    """

    def __init__(self, reader: PlacementReader, clock: Clock) -> None:
        self._kept: Kept[NodePlacement] = Kept(reader.placement, clock, what="placement")

    async def tiers(self, request: Request) -> tuple[Tier, ...] | None:
        """Return on which nodes to try, in order; None where that can't be known now.

        A placement is not looked at for a request that names a node itself.
        """
        if request.node is not None:
            return tiers(request, Unplaced())
        placement = await self._kept.of(request.namespace)
        return None if placement is None else tiers(request, placement)

    def changed(self, namespace: Namespace) -> None:
        """Believe what is known of a namespace only while nothing else can be read."""
        self._kept.changed(namespace)
