"""What a farm says of its pools and of what waits."""

from farm.protocol.resources import (
    PoolList,
    PoolView,
    UnservedList,
    UnservedView,
    WhyView,
)
from farm.sdk.transport import Transport, path_of


class PoolCalls:
    """The part of `FarmClient` that asks why things wait."""

    _farm: Transport

    async def pools(self) -> tuple[PoolView, ...]:
        """Return the pools, with what a job would be told there now."""
        return (await self._farm.call(PoolList, "GET", "/v1/pools")).items

    async def unserved(self) -> tuple[UnservedView, ...]:
        """Return the jobs that nobody can take now, and why."""
        return (await self._farm.call(UnservedList, "GET", "/v1/pools/unserved")).items

    async def why(self, id: str) -> WhyView:
        """Return why a job has not begun."""
        return await self._farm.call(WhyView, "GET", path_of("jobs", id, "why"))
