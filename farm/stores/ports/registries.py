"""The four registries as one store, and what such a store may offer besides."""

from typing import Protocol, runtime_checkable

from farm.core.model import Namespace
from farm.stores.ports.connections import ConnectionRegistry
from farm.stores.ports.contexts import ContextRegistry
from farm.stores.ports.reachability import Reachability
from farm.stores.ports.reservations import BrowserWindowRegistry


@runtime_checkable
class TurnKeeper(Protocol):
    """Counts turns for all coordinators over one store."""

    async def next_turn(self, namespace: Namespace) -> int:
        """Return 0, then 1, and so on; each number once in a namespace."""
        ...


@runtime_checkable
class Wakes(Protocol):
    """Tells waiters that something may have changed (P7)."""

    def generation(self) -> int:
        """Return the number of the last change; read it before reading the state."""
        ...

    async def changed_since(self, generation: int) -> None:
        """Return as soon as there has been a change after `generation`."""
        ...


class Registry(
    ConnectionRegistry, ContextRegistry, BrowserWindowRegistry, Reachability, Wakes, Protocol
):
    """All four over one atomic store.

    `FirstFit`, `ClientRelease`, `TurnKeeper`, `PlacedReservations` and `Slots` are offered besides;
    the farm's own stores offer them all.
    """
