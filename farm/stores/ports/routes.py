"""The port by which coordinators reach each other's agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from farm.core.model import ClientId, LinkId

CoordinatorId = NewType("CoordinatorId", str)
"""One life of one coordinator."""

LEASE_S = 5.0
"""For how long a coordinator is there without renewing, by default."""

Links = Sequence[tuple[ClientId, LinkId]]
"""Agents, each with a link of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an agent's link is."""

    coordinator: CoordinatorId
    link: LinkId


class Routes(Protocol):
    """Which coordinator holds which agent's link, and a box of mail for each coordinator.

    A coordinator is there for as long as its lease, which it renews. Mail may be lost with the
    coordinator it is for, and is never read twice. One that is there no more has closed its links
    and reserves nothing: whoever sees its lease lapse says so in the registry, in the same step.
    """

    @property
    def coordinator(self) -> CoordinatorId:
        """Whose end of it this is."""
        ...

    @property
    def lease_s(self) -> float:
        """For how long a coordinator is there without renewing."""
        ...

    async def renew(self, links: Links) -> Links:
        """Be there for one more lease, with these links where nobody has claimed them since.

        Clears away what coordinators have left that are there no more, if this one has been there
        for a lease itself: else all of them may just have been kept from renewing, as it was.
        Returns the links that this has closed.
        """
        ...

    async def claim(self, client_id: ClientId, link: LinkId) -> None:
        """Hold an agent's link, from now on and instead of any other; renews the lease, too."""
        ...

    async def give_up(self, client_id: ClientId, link: LinkId) -> None:
        """Hold it no more; does nothing if it has been claimed since."""
        ...

    async def route(self, client_id: ClientId) -> Route | None:
        """Return where an agent's link is; None if nobody who is there holds one."""
        ...

    async def is_there(self, coordinator: CoordinatorId) -> bool:
        """Tell whether a coordinator's lease is not over."""
        ...

    async def post(self, to: CoordinatorId, letter: str) -> bool:
        """Put a letter into a box, in order; False if that coordinator is not there."""
        ...

    async def post_others(self, letter: str) -> None:
        """Put a letter into the box of every other coordinator that is there."""
        ...

    async def receive(self) -> Sequence[str]:
        """Take the next letters out of the own box, waiting a while if there are none."""
        ...

    async def leave(self) -> None:
        """Be there no more, and clear away what is left here."""
        ...
