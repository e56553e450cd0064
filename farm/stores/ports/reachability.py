"""Who is not to be chosen for now, as the coordinators that hold the links have found."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from farm.core.model import ClientId, Instant, LinkId
from farm.core.pools import Exclusion


@runtime_checkable
class Reachability(Protocol):
    """The exclusions of all coordinators, which every reading of candidates carries.

    So it does that an agent has registered on a link that is not proven.
    A snapshot has them in `Client.excluded`, and what assigns or reserves looks at them again in
    its own step. An agent that is not there may be named; it changes nothing.
    """

    async def publish_exclusions(
        self,
        coordinator: str,
        excluded: Mapping[ClientId, Exclusion],
        *,
        now: Instant,
        lease_s: float,
    ) -> None:
        """Replace all that this coordinator has published, and wake who waits, changed or not.

        It counts for `lease_s`, so that one that has died excludes nobody for long.
        """
        ...

    async def proven(self, client_id: ClientId, link: LinkId) -> bool:
        """Keep an agent out no more for its link being new, and wake who waits.

        False if that is not its current link, or it is not kept out.
        """
        ...

    async def exclusions(self, *, now: Instant) -> Mapping[ClientId, Exclusion]:
        """Return the union of all that counts now; of what was published also who is not there."""
        ...
