"""Parcels between coordinators of one process; one that is alone has nobody to post to."""

from collections import deque
from collections.abc import Sequence

from farm.stores.memory.wakes import MemoryWakes
from farm.stores.ports.routes import CoordinatorId

_AT_ONCE = 64
_BOX = 10_000


class PostOffice:
    """The boxes of those who are there."""

    def __init__(self) -> None:
        self.boxes: dict[CoordinatorId, deque[bytes]] = {}
        self.wakes = MemoryWakes()

    def leave(self, coordinator: CoordinatorId) -> None:
        """One is there no more, nor is what lay in its box."""
        self.boxes.pop(coordinator, None)


class MemoryParcels:
    """The `Parcels` port.

    Args:
        coordinator: Whose end it is; it is there until it leaves the office.
        office: What it shares with others; by default it is alone.
        box: How many parcels a box holds.
    """

    def __init__(
        self, coordinator: CoordinatorId, office: PostOffice | None = None, *, box: int = _BOX
    ) -> None:
        self.coordinator = coordinator
        self._office = office or PostOffice()
        self._office.boxes[coordinator] = deque()
        self._box = box

    async def there(self) -> Sequence[CoordinatorId]:
        """See `Parcels.there`."""
        return tuple(self._office.boxes)

    async def post(self, to: CoordinatorId, parcel: bytes) -> bool:
        """See `Parcels.post`."""
        box = self._office.boxes.get(to)
        if box is None or len(box) >= self._box:
            return False
        box.append(parcel)
        self._office.wakes.changed()
        return True

    async def receive(self) -> Sequence[bytes]:
        """See `Parcels.receive`; it waits until there are some."""
        office = self._office
        while not (box := office.boxes.get(self.coordinator)):
            await office.wakes.changed_since(office.wakes.generation())
        return [box.popleft() for _ in range(min(len(box), _AT_ONCE))]
