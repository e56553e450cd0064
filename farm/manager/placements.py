"""The placements of namespaces, read now and then."""

from dataclasses import dataclass, replace

import structlog

from farm.clock import Clock
from farm.core.model import Instant, Namespace, Request
from farm.core.tiers import NodePlacement, Tier, Unplaced, tiers
from farm.errors import StoreUnavailableError
from farm.stores.ports.placements import PlacementReader

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KEPT_S = 5.0
"""For so long a placement is believed without another look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    placement: NodePlacement
    until: Instant


class Placements:
    """What was last read of each namespace.

    A pinned namespace stays so while its placement can't be read: the last known one goes on, and
    where none is known its work waits. It is never taken for unplaced.
    """

    def __init__(self, reader: PlacementReader, clock: Clock, *, kept_s: float = KEPT_S) -> None:
        self._reader = reader
        self._clock = clock
        self._kept_s = kept_s
        self._known: dict[Namespace, _Known] = {}

    async def tiers(self, request: Request) -> tuple[Tier, ...] | None:
        """Return on which nodes to try, in order; None where that can't be known now.

        A placement is not looked at for a request that names a node itself.
        """
        if request.node is not None:
            return tiers(request, Unplaced())
        placement = await self.of(request.namespace)
        return None if placement is None else tiers(request, placement)

    def changed(self, namespace: Namespace) -> None:
        """Believe what is known of a namespace only while nothing else can be read."""
        if (known := self._known.get(namespace)) is not None:
            self._known[namespace] = replace(known, until=Instant(0.0))

    async def of(self, namespace: Namespace) -> NodePlacement | None:
        """Return where a namespace's work runs; None where that can't be known now."""
        known, now = self._known.get(namespace), self._clock()
        if known is not None and now < known.until:
            return known.placement
        try:
            placement = await self._reader.placement(namespace)
        except StoreUnavailableError as error:
            log.warning("placement.unknown", known=known is not None, reason=error.detail)
            return None if known is None else known.placement
        self._known[namespace] = _Known(
            placement=placement, until=Instant(self._clock() + self._kept_s)
        )
        return placement
