"""Commands to agents, and what they answer. One `AppNode` holds the links of one coordinator."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog

from farm.clock import Clock, system_clock
from farm.core.commands import Answers, ClientDelivery
from farm.core.model import ClientId, Instant, LinkId, Namespace
from farm.errors import ClientAbsentError, CollaboratorMissingError, StoreUnavailableError
from farm.manager.awaited import Awaited, SentCommand
from farm.manager.carrier import not_connected
from farm.manager.evidence import Admission, Answer, Notes
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.stores.ports.commands import CommandLog
from farm.stores.ports.routes import CoordinatorId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Send = Callable[[wire.ToAgent], Awaitable[None]]


class LinkWatcher(Protocol):
    """Is told of the links that are held here. Each raises StoreUnavailableError for its store."""

    async def opened(self, client_id: ClientId, link: LinkId, send: Send) -> None:
        """Take note of a link, which may be the one that is known; it may `send` on it at once.

        `send` queues a message behind the commands, and raises ClientAbsentError if it can't.
        """
        ...

    async def answered(self, client_id: ClientId, link: LinkId, nonce: str) -> None:
        """Take note of a pong."""
        ...

    async def closed(self, client_id: ClientId, link: LinkId) -> None:
        """Take note that a link is gone."""
        ...


class AppNode:
    """Sends commands over the link that is current, and hands answers to who waits for them.

    Args:
        commands: Keeps the evidence of what is sent with an admission; None keeps none.
        relay: Reaches the agents whose link another coordinator holds; None reaches none. It wants
            `commands`, the same log that the other coordinators use, and `run`.
        watcher: Is told of the links.
        clock: The time of the evidence.

    Raises:
        CollaboratorMissingError: If there is a relay and no `commands`.
    """

    def __init__(
        self,
        *,
        commands: CommandLog | None = None,
        relay: Relay | None = None,
        watcher: LinkWatcher | None = None,
        clock: Clock = system_clock,
    ) -> None:
        if relay is not None and commands is None:
            raise CollaboratorMissingError("commands")
        self._links: dict[ClientId, tuple[LinkId, Send]] = {}
        self._awaited = Awaited()
        self._notes = None if commands is None else Notes(commands, clock)
        self._relay = relay
        self._watcher = watcher

    async def run(self) -> None:
        """Serve the other coordinators, until cancelled; to be run where there is a relay."""
        if self._relay is not None:
            await self._relay.run(self)

    # Links

    async def attach(self, client_id: ClientId, link: LinkId, send: Send) -> None:
        """Use `send` for this agent from now on; what was sent on an earlier link is lost.

        Raises:
            StoreUnavailableError: If the other coordinators can't be told; nothing has changed.
        """
        if self._relay is not None:
            await self._relay.attached(client_id, link)
        if self._watcher is not None:
            await self._watcher.opened(client_id, link, send)
        self._links[client_id] = (link, send)
        for sent in self._awaited.of_client(client_id):
            if sent.link != link:
                sent.fail()

    async def detach(self, client_id: ClientId, link: LinkId) -> None:
        """Forget a link that has closed; commands that do not outlive it fail."""
        current = self._links.get(client_id)
        if current is not None and current[0] == link:
            del self._links[client_id]
            for sent in self._awaited.of_client(client_id):
                sent.fail()
        if self._relay is not None:
            await self._relay.detached(client_id, link)
        if self._watcher is not None:
            try:
                await self._watcher.closed(client_id, link)
            except StoreUnavailableError as error:
                log.warning("link.not_detached", client_id=client_id, reason=error.detail)

    async def ponged(self, client_id: ClientId, link: LinkId, nonce: str) -> None:
        """Take note that an agent's runtime has answered a ping.

        Raises:
            StoreUnavailableError: If what follows from it can't be kept.
        """
        if self._watcher is not None:
            await self._watcher.answered(client_id, link, nonce)

    def links(self) -> Sequence[tuple[ClientId, LinkId]]:
        """See `Carrier.links`."""
        return [(client_id, link) for client_id, (link, _) in self._links.items()]

    async def held_by(self, client_id: ClientId) -> CoordinatorId | None:
        """Return which other coordinator holds an agent's link; None if it is held here.

        Raises:
            ClientAbsentError: If nobody holds one.
            StoreUnavailableError: If that can't be read.
        """
        if client_id in self._links:
            return None
        holder = None if self._relay is None else await self._relay.holder(client_id)
        if self._relay is None or holder in (None, self._relay.coordinator):
            raise not_connected(client_id)
        return holder

    # Messages that nobody waits on

    async def tell(self, client_id: ClientId, message: wire.ToAgent) -> None:
        """Send a message that nobody waits on.

        Raises:
            ClientAbsentError: If the agent can't be reached.
        """
        if self._relay is None or client_id in self._links:
            await self.tell_here(client_id, message)
        else:
            await self._relay.tell(client_id, message)

    async def signal(self, client_id: ClientId, message: wire.ToAgent) -> None:
        """Send a message and know that it was handed to the agent's link, wherever that is held.

        Raises:
            ClientAbsentError: If it was not, or nobody says that it was.
            StoreUnavailableError: If where the link is can't be read; nothing was sent.
        """
        if self._relay is None or client_id in self._links:
            await self.tell_here(client_id, message)
        else:
            await self._relay.signal(client_id, message)

    async def tell_here(self, client_id: ClientId, message: wire.ToAgent) -> LinkId:
        """See `Carrier.tell_here`."""
        current = self._links.get(client_id)
        if current is None:
            raise not_connected(client_id)
        link, send = current
        await send(message)
        return link

    async def tell_all(self, message: wire.ToAgent) -> None:
        """Send a message to every agent that is connected here."""
        for client_id in list(self._links):
            with contextlib.suppress(ClientAbsentError):
                await self.tell_here(client_id, message)

    # Commands

    async def send(
        self,
        client_id: ClientId,
        command: wire.Command,
        *,
        outlives_link: bool = False,
        admission: Admission | None = None,
        here: bool = False,
    ) -> SentCommand:
        """Send a command; wait for `answer` on what is returned, then `forget` it.

        With an admission its evidence is kept: that it is admitted, then, before anything goes out,
        that a send is attempted, then what the agent says. With `here` it goes over a link that is
        held here or not at all.

        Raises:
            ClientAbsentError: If the agent has no link; nothing was sent.
            ConflictError: If the namespace has used the command's id before; nothing was sent.
            StoreUnavailableError: If the evidence can't be kept; nothing was sent.
        """
        namespace = None
        if self._notes is not None and admission is not None:
            namespace = admission.namespace
            await self._notes.admitted(client_id, command, admission)
        sent = self.expect(
            client_id,
            command.command_id,
            outlives_link=outlives_link,
            namespace=namespace,
            here=here,
        )
        try:
            await self._carry(sent, command)
        except ClientAbsentError:
            self.forget(sent)
            if self._notes is not None and namespace is not None:
                await self._notes.failed(namespace, command.command_id)
            raise
        except BaseException:
            self.forget(sent)
            raise
        return sent

    async def _carry(self, sent: SentCommand, command: wire.Command) -> None:
        if sent.here or self._relay is None or sent.client_id in self._links:
            sent.link = await self.deliver(sent.client_id, command, sent.namespace)
            return
        route = await self._relay.send(self, sent.client_id, command, sent.namespace)
        sent.link, sent.through = route.link, route.coordinator

    async def deliver(
        self, client_id: ClientId, command: wire.Command, namespace: Namespace | None
    ) -> LinkId:
        """See `Carrier.deliver`."""
        if client_id not in self._links:
            raise not_connected(client_id)
        if (
            self._notes is not None
            and namespace is not None
            and not await self._notes.attempted(namespace, command.command_id)
        ):
            raise ClientAbsentError(f"command {command.command_id} has been withdrawn")
        current = self._links.get(client_id)
        if current is None:
            raise not_connected(client_id)
        link, send = current
        await send(command)
        return link

    def expect(
        self,
        client_id: ClientId,
        command_id: str,
        *,
        outlives_link: bool,
        namespace: Namespace | None = None,
        here: bool = False,
    ) -> SentCommand:
        """Wait for the answer to a command sent in an earlier life; `here` as for `send`."""
        current = self._links.get(client_id)
        sent = SentCommand(
            command_id=command_id,
            client_id=client_id,
            namespace=namespace,
            link=None if current is None else current[0],
            outlives_link=outlives_link,
            here=here,
        )
        self._awaited.add(sent)
        return sent

    def forget(self, sent: SentCommand) -> None:
        """Wait no longer."""
        self._awaited.forget(sent)

    def sent_through_others(self) -> Sequence[SentCommand]:
        """See `Carrier.sent_through_others`."""
        return self._awaited.sent_through_others()

    async def answered(self, client_id: ClientId, answer: Answer) -> bool:
        """Hand an agent's answer to who waits for it, here or elsewhere; False if nobody is known.

        Its evidence is written first.

        Raises:
            StoreUnavailableError: If that can't be; nobody has been handed anything.
        """
        if await self._take(client_id, answer, noted=False):
            return True
        return self._relay is not None and await self._relay.pass_on(self, client_id, answer)

    async def taken_in(self, client_id: ClientId, answer: Answer, *, noted: bool) -> bool:
        """See `Carrier.taken_in`."""
        sent = self._awaited.get(answer.command_id)
        if sent is not None and sent.here:
            return False  # what it rests on has not come with it
        return await self._take(client_id, answer, noted=noted)

    async def _take(self, client_id: ClientId, answer: Answer, *, noted: bool) -> bool:
        sent = self._awaited.get(answer.command_id)
        if sent is None or sent.client_id != client_id:
            return False
        if not noted and sent.namespace is not None:
            await self.note(sent.namespace, answer)
        sent.hear(answer)
        return True

    def sends_for_another(self, command_id: str) -> bool:
        """Tell whether another coordinator waits for what an agent of ours makes of a command."""
        return self._relay is not None and self._relay.forwards(command_id)

    # Evidence

    async def note(self, namespace: Namespace, answer: Answer) -> None:
        """See `Carrier.note`."""
        if self._notes is not None:
            await self._notes.answered(namespace, answer)

    async def withdraw(self, namespace: Namespace, command_id: str) -> bool:
        """See `Carrier.withdraw`."""
        return self._notes is not None and await self._notes.withdrawn(namespace, command_id)

    async def answers(self, namespace: Namespace, command_id: str) -> Answers:
        """Answer the five questions of a command from its evidence.

        Raises:
            CollaboratorMissingError: If no evidence is kept.
            NotFoundError: If nothing is known of the command in this namespace.
            StoreUnavailableError: If the evidence can't be read.
        """
        return await self._kept().answers(namespace, command_id)

    async def deliveries(
        self, namespace: Namespace, *, failed_since: Instant
    ) -> Mapping[ClientId, ClientDelivery]:
        """Count the namespace's commands that are retained, by agent; failures since a moment.

        Raises:
            CollaboratorMissingError: If no evidence is kept.
            StoreUnavailableError: If the evidence can't be read.
        """
        return await self._kept().deliveries(namespace, failed_since=failed_since)

    async def forget_evidence(self, namespace: Namespace) -> None:
        """Let go of all that is known of a namespace's commands, where anything is kept.

        Raises:
            StoreUnavailableError: If that can't be done.
        """
        if self._notes is not None:
            await self._notes.forget(namespace)

    def _kept(self) -> Notes:
        if self._notes is None:
            raise CollaboratorMissingError("an app_node with commands")
        return self._notes
