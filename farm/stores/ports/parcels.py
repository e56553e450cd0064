"""The port by which coordinators hand each other what travels on sockets."""

from collections.abc import Sequence
from typing import Protocol

from farm.stores.ports.routes import CoordinatorId


class Parcels(Protocol):
    """A box of parcels for each coordinator that is there, and who is there; see `Routes`.

    Parcels that are posted one after the other are received in that order, each once. What is not
    in a box is not lost in silence: who posts it is told. A box ends with its coordinator's lease.
    """

    @property
    def coordinator(self) -> CoordinatorId:
        """Whose end of it this is."""
        ...

    async def there(self) -> Sequence[CoordinatorId]:
        """Return which coordinators are there, this one too."""
        ...

    async def post(self, to: CoordinatorId, parcel: bytes) -> bool:
        """Put a parcel into a box; False if that coordinator is not there, or its box is full.

        Raises:
            StoreUnavailableError: If it can't be told whether it is in the box.
        """
        ...

    async def receive(self) -> Sequence[bytes]:
        """Take the next parcels out of the own box, waiting a while if there are none.

        Raises:
            StoreUnavailableError: If they can't be read; they are in the box still.
        """
        ...
