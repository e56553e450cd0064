"""Who is not to be chosen for now."""

from collections.abc import Mapping

from farm.core.model import ClientId, Instant
from farm.core.pools import Exclusion
from farm.stores.memory.clients import MemoryClients, Published


class MemoryExclusions(MemoryClients):
    """The port `Reachability`."""

    async def publish_exclusions(
        self,
        coordinator: str,
        excluded: Mapping[ClientId, Exclusion],
        *,
        now: Instant,
        lease_s: float,
    ) -> None:
        """See `Reachability.publish_exclusions`."""
        counting = {name: one for name, one in self._published.items() if one.until > now}
        counting[coordinator] = Published(until=now + lease_s, excluded=dict(excluded))
        self._published = counting
        self.changed()

    async def exclusions(self, *, now: Instant) -> Mapping[ClientId, Exclusion]:
        """See `Reachability.exclusions`."""
        return self._exclusions(now)
