"""Commands to agents, and what they answer. One `AppNode` holds the links of one coordinator."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from farm.core.model import ClientId, ContextId, LinkId, Token
from farm.errors import ClientAbsentError
from farm.protocol import messages as wire

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Send = Callable[[wire.ToAgent], Awaitable[None]]
Answer = wire.Ack | wire.Result
"""An ack that refuses, or the terminal result."""


@dataclass(slots=True, kw_only=True, eq=False)
class SentCommand:
    """A command on its way: `answer` is set by a refusal or by its result."""

    command_id: str
    client_id: ClientId
    link: LinkId | None
    """What it was sent on."""
    outlives_link: bool
    """The agent keeps its result over a lost link (P11), so the wait goes on."""
    acknowledged: bool = False
    """The agent has taken it up."""
    answer: asyncio.Future[Answer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class AppNode:
    """Sends commands over the link that is current, and hands answers to who waits for them."""

    def __init__(self) -> None:
        self._links: dict[ClientId, tuple[LinkId, Send]] = {}
        self._waiting: dict[str, SentCommand] = {}

    def attach(self, client_id: ClientId, link: LinkId, send: Send) -> None:
        """Use `send` for this agent from now on; what was sent on an earlier link is lost."""
        self._links[client_id] = (link, send)
        self._fail(client_id, [s for s in self._waiting.values() if s.link != link])

    def detach(self, client_id: ClientId, link: LinkId) -> None:
        """Forget a link that has closed; commands that do not outlive it fail."""
        current = self._links.get(client_id)
        if current is None or current[0] != link:
            return
        del self._links[client_id]
        self._fail(client_id, list(self._waiting.values()))

    @staticmethod
    def _fail(client_id: ClientId, unanswered: list[SentCommand]) -> None:
        for sent in unanswered:
            if sent.client_id == client_id and not sent.outlives_link and not sent.answer.done():
                sent.answer.set_exception(ClientAbsentError(f"agent {client_id} has gone"))

    async def tell(self, client_id: ClientId, message: wire.ToAgent) -> None:
        """Send a message that nobody waits on.

        Raises:
            ClientAbsentError: If the agent has no link.
        """
        current = self._links.get(client_id)
        if current is None:
            raise ClientAbsentError(f"agent {client_id} is not connected")
        await current[1](message)

    async def tell_all(self, message: wire.ToAgent) -> None:
        """Send a message to every agent that is connected."""
        for client_id in list(self._links):
            with contextlib.suppress(ClientAbsentError):
                await self.tell(client_id, message)

    async def send(
        self,
        client_id: ClientId,
        command: wire.Command,
        *,
        outlives_link: bool = False,
    ) -> SentCommand:
        """Send a command; wait for `answer` on what is returned, then `forget` it.

        Raises:
            ClientAbsentError: If the agent has no link; nothing was sent.
        """
        sent = self.expect(client_id, command.command_id, outlives_link=outlives_link)
        try:
            await self.tell(client_id, command)
        except BaseException:
            self.forget(sent)
            raise
        return sent

    def expect(self, client_id: ClientId, command_id: str, *, outlives_link: bool) -> SentCommand:
        """Wait for the answer to a command sent in an earlier life."""
        current = self._links.get(client_id)
        sent = SentCommand(
            command_id=command_id,
            client_id=client_id,
            link=None if current is None else current[0],
            outlives_link=outlives_link,
        )
        self._waiting[command_id] = sent
        return sent

    def forget(self, sent: SentCommand) -> None:
        """Wait no longer."""
        self._waiting.pop(sent.command_id, None)
        if sent.answer.done() and not sent.answer.cancelled():
            sent.answer.exception()  # looked at, so that nobody is warned

    def answered(self, client_id: ClientId, answer: Answer) -> bool:
        """Hand an agent's answer to who waits for it; False if nobody waits for one of its."""
        sent = self._waiting.get(answer.command_id)
        if sent is None or sent.client_id != client_id:
            return False
        if isinstance(answer, wire.Ack) and answer.refused is None:
            sent.acknowledged = True
        elif not sent.answer.done():
            sent.answer.set_result(answer)
        return True


def to_wire_token(token: Token) -> wire.Token:
    """Turn a token into its form on the wire."""
    return wire.Token(store_epoch=token.store_epoch, counter=token.counter)


def command(
    command_id: str,
    body: wire.OpenWindow | wire.OpenTab | wire.RunPlan | wire.Release | wire.Probe,
    *,
    context_id: ContextId | None = None,
    token: Token | None = None,
) -> wire.Command:
    """Build a command."""
    return wire.Command(
        command_id=command_id,
        context_id=context_id,
        token=None if token is None else to_wire_token(token),
        body=body,
    )
