"""Who is there: the connection registry."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from farm.core.model import Assignment, Client, ClientId, Instant, LinkId, Namespace, Token
from farm.core.reservation import Denial


class ConnectionRegistry(Protocol):
    """Who is there, by heartbeat, and with which exact metadata."""

    async def register(
        self,
        client: Client,
        *,
        epoch_name: str,
        highest_token: Token | None,
        now: Instant,
    ) -> Client | Denial:
        """Let an agent in on `client.link`; return it with its epoch number as stored.

        On a link of its own it is not fenced, and where `client.excluded` is OPENING_PROBATION it
        is kept out from the same step on, until it is `Reachability.proven`; on the one it had it
        is what it was. What is returned says nothing of exclusions.
        The same `epoch_name` of a known client keeps its number, contexts and assignments; a new
        one gets the next number and starts with none. Refused with IN_USE while another instance
        of the same client_id is present on a link of its own, or away and not yet removed while it
        holds assignments, which it may still be running.
        """
        ...

    async def heard(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that a frame of the agent's runtime came; False if `link` is not the current one."""
        ...

    async def set_draining(
        self, client_id: ClientId, draining: bool = True, *, because: str = ""
    ) -> None:
        """Let the agent take nothing new, or again what there is; note why.

        One that is fenced takes nothing all the same.
        """
        ...

    async def fence(self, client_id: ClientId, *, by: str, now: Instant) -> bool:
        """Give the agent nothing new on its present link, whatever it says of itself.

        Asked again, who asked first and when is kept. False if it is unknown.
        """
        ...

    async def set_advertised_capacity(
        self, client_id: ClientId, link: LinkId, max_concurrency: int
    ) -> bool:
        """Note how many slots an agent has now, and wake who waits; False if it has left the link.

        Fewer than are taken stop new work only.

        Raises:
            ValueError: If there are none.
        """
        ...

    async def unlink(self, client_id: ClientId, link: LinkId, *, now: Instant) -> bool:
        """Note that the link closed; the contexts stay, not selectable. False if not current."""
        ...

    async def remove(
        self, client_id: ClientId, *, epoch: int, seen_at: Instant | None = None
    ) -> tuple[Assignment, ...] | None:
        """Forget an epoch of a client that is known to be gone; return what it held.

        None, and nothing is done, where it is not there, or, with a `seen_at`, where it has been
        heard of since.
        """
        ...


@runtime_checkable
class PresenceReader(Protocol):
    """A connection registry that is not one store with the context registry.

    The manager reads it at each acquisition, and takes nothing for present that is not in it.
    """

    async def presence(
        self, namespace: Namespace, *, now: Instant
    ) -> Mapping[ClientId, Mapping[str, Any]]:
        """Return the clients of a namespace that are present now, each with its metadata."""
        ...
