"""What an agent reports of its contexts on one link, and what it is told in answer."""

from collections.abc import Awaitable, Callable

import structlog

from farm.api import convert
from farm.api.link_deps import LinkDeps
from farm.core.model import Client, ContextId, LinkId
from farm.core.reservation import Denial
from farm.manager.commands import command
from farm.protocol import messages as wire

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class AgentReports:
    """Takes the reports of one link.

    Args:
        deps: The rest of the farm.
        link: Whose reports they are.
        send: Sends the agent a message.
    """

    def __init__(
        self, deps: LinkDeps, link: LinkId, send: Callable[[wire.ToAgent], Awaitable[None]]
    ) -> None:
        self._deps = deps
        self._link = link
        self._send = send
        self._draining: tuple[bool, str] = (False, "")
        """As the registry has it since the last `hello`."""
        self._released: dict[str, wire.Token] = {}
        """The releases that the agent has been sent on this link, by context."""

    def begin(self) -> None:
        """Take note of a `hello` that was let in: the agent drains no more."""
        self._draining = (False, "")

    def sent(self, message: wire.ToAgent) -> None:
        """Take note of what the agent has been sent."""
        match message:
            case wire.Command(context_id=str(context_id), token=wire.Token() as token, body=body):
                if isinstance(body, wire.Release):
                    self._released[context_id] = token
            case _:
                pass

    async def take(self, client: Client, report: wire.Report) -> None:
        """Have the registry know of it, and the agent of what has ended.

        Raises:
            ClientAbsentError: If the agent has stopped reading.
            StoreUnavailableError: As the registry raises it.
        """
        await self._note_draining(client, report)
        gone = await self._deps.registry.report(
            client.client_id,
            self._link,
            epoch=report.epoch_number,
            number=report.number,
            windows=convert.windows(report),
            contexts=convert.contexts(report),
            now=self._deps.clock(),
        )
        if isinstance(gone, Denial):
            return
        self._deps.dispatcher.agents.context_is_gone(gone)
        await self._release_forgotten(client, report)

    async def _note_draining(self, client: Client, report: wire.Report) -> None:
        if (now := (report.draining, report.draining_because)) == self._draining:
            return
        self._draining = now
        log.info(
            "agent.draining" if report.draining else "agent.takes_again",
            client_id=client.client_id,
            because=report.draining_because,
        )
        await self._deps.registry.set_draining(
            client.client_id, report.draining, because=report.draining_because
        )
        self._deps.news.draining(client, *now)

    async def _release_forgotten(self, client: Client, report: wire.Report) -> None:
        """Tell the agent of assignments that have ended and of which it has not been told."""
        reported = {context.context_id for context in report.contexts}
        self._released = {c: token for c, token in self._released.items() if c in reported}
        for context in report.contexts:
            if context.token is not None and context.token == self._released.get(
                context.context_id
            ):
                continue
            token = convert.token(context.token)
            context_id = ContextId(context.context_id)
            if token is None or await self._deps.registry.holds(
                client.client_id, context_id, token
            ):
                continue
            await self._send(
                command(f"release-{context_id}", wire.Release(), context_id=context_id, token=token)
            )
