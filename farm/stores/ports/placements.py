"""Where the work of each namespace runs."""

from typing import Protocol

from farm.core.model import Namespace
from farm.core.tiers import NodePlacement, Unplaced


class PlacementReader(Protocol):
    """Knows the placements of namespaces."""

    async def placement(self, namespace: Namespace) -> NodePlacement:
        """Return where the namespace's work runs; one that is not known is unplaced.

        Raises:
            StoreUnavailableError: If it can't be read.
        """
        ...


class NoPlacements:
    """The `PlacementReader` of a farm whose namespaces are placed nowhere in particular."""

    async def placement(self, namespace: Namespace) -> NodePlacement:
        """See `PlacementReader.placement`."""
        return Unplaced()
