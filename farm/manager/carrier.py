"""What the relay between coordinators asks of the links and the waits of its own."""

from collections.abc import Sequence
from typing import Protocol

from farm.core.model import ClientId, LinkId, Namespace
from farm.errors import ClientAbsentError
from farm.manager.awaited import SentCommand
from farm.manager.evidence import Answer
from farm.protocol import messages as wire
from farm.stores.ports.routes import Links


class Carrier(Protocol):
    """The links of this coordinator, and who waits here."""

    def links(self) -> Links:
        """Return the links that are held here."""
        ...

    def sent_through_others(self) -> Sequence[SentCommand]:
        """Return what is waited for that other coordinators have sent."""
        ...

    async def deliver(
        self, client_id: ClientId, command: wire.Command, namespace: Namespace | None
    ) -> LinkId:
        """Send a command on a link held here, once it is noted that this is attempted.

        Raises:
            ClientAbsentError: If there is no link, or the command has been withdrawn.
            StoreUnavailableError: If it can't be noted; nothing was sent.
        """
        ...

    async def tell_here(self, client_id: ClientId, message: wire.ToAgent) -> LinkId:
        """Send a message on a link held here. Raises ClientAbsentError if there is none."""
        ...

    async def taken_in(self, client_id: ClientId, answer: Answer, *, noted: bool) -> bool:
        """Hand an answer to who waits for it here; False if nobody does."""
        ...

    async def note(self, namespace: Namespace, answer: Answer) -> None:
        """Write the evidence of an answer."""
        ...

    async def withdraw(self, namespace: Namespace, command_id: str) -> bool:
        """Give a command up that has not been sent; False if it may have been."""
        ...


def not_connected(client_id: ClientId) -> ClientAbsentError:
    """Return the error that says that nobody has a link of this agent's."""
    return ClientAbsentError(f"agent {client_id} is not connected")
