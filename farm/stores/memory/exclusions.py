"""Who is not to be chosen for now."""

from collections.abc import Mapping

from farm.core.model import ClientId, Instant, LinkId
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

    async def proven(self, client_id: ClientId, link: LinkId) -> bool:
        """See `Reachability.proven`."""
        client = self._clients.get(client_id)
        if client is None or client.link != link or client_id not in self._unproven:
            return False
        del self._unproven[client_id]
        self.changed()
        return True

    async def exclusions(self, *, now: Instant) -> Mapping[ClientId, Exclusion]:
        """See `Reachability.exclusions`."""
        return self._exclusions(now)
