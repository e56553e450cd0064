"""Commands for agents whose link another coordinator holds, and their way back."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import assert_never

import structlog
from pydantic import ValidationError

from farm.core.model import ClientId, LinkId, Namespace
from farm.errors import ClientAbsentError, StoreUnavailableError
from farm.manager.awaited import SentCommand
from farm.manager.carrier import Carrier, not_connected
from farm.manager.evidence import Answer
from farm.manager.forwarding import Forwarding
from farm.manager.letters import (
    AboutJobs,
    AboutPolls,
    AnyLetter,
    Change,
    Granted,
    Order,
    Passage,
    Poll,
    Polled,
    Reply,
    Signal,
    Wish,
    Word,
    letters,
)
from farm.protocol import messages as wire
from farm.stores.ports.routes import CoordinatorId, Links, Route, Routes

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_RENEWALS_PER_LEASE = 4
_PAUSE_S = 0.2


class Relay:
    """Sends through other coordinators, and for them.

    Args:
        routes: Which of them holds which link.
        word_within_s: How long another coordinator may take to say that it has sent a command.
    """

    def __init__(self, routes: Routes, *, word_within_s: float = 5.0) -> None:
        self._routes = routes
        self._word_within_s = word_within_s
        self._words: dict[str, asyncio.Future[Word]] = {}
        self._forwarding = Forwarding(routes)
        self.about_jobs: Callable[[AboutJobs], None] = lambda letter: None
        """Called with what other coordinators write of jobs of a ledger that they share."""
        self.left_behind: Callable[[Links], Awaitable[None]] = _say_nothing
        """Called with the links of coordinators that are there no more; see `Routes.renew`."""
        self.about_polls: Callable[[AboutPolls], None] = lambda letter: None
        """Called with what they write of agents' sessions of requests."""

    @property
    def coordinator(self) -> CoordinatorId:
        """Whose end of it this is."""
        return self._routes.coordinator

    @property
    def lease_s(self) -> float:
        """For how long a coordinator is there without saying so again."""
        return self._routes.lease_s

    async def run(self, node: Carrier) -> None:
        """Serve the other coordinators, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._stay(node), name="renew routes")
                group.create_task(self._read(node), name="read letters")
        finally:
            try:
                await self._routes.leave()
            except StoreUnavailableError as error:
                log.warning("relay.not_left", reason=error.detail)

    async def attached(self, client_id: ClientId, link: LinkId) -> None:
        """Let the others know that an agent's link is here."""
        await self._routes.claim(client_id, link)

    async def detached(self, client_id: ClientId, link: LinkId) -> None:
        """Let the others know that it is here no more; they learn it from a refusal otherwise."""
        try:
            await self._routes.give_up(client_id, link)
        except StoreUnavailableError as error:
            log.warning("relay.not_detached", client_id=client_id, reason=error.detail)

    # This coordinator's own commands

    async def send(
        self,
        node: Carrier,
        client_id: ClientId,
        command: wire.Command,
        namespace: Namespace | None,
    ) -> Route:
        """Have a command sent; return where it went, or may have gone.

        Raises:
            ClientAbsentError: If the agent has no link, or none of which its coordinator says
                anything within the time for that; nothing was sent, and nothing will be.
            StoreUnavailableError: If where its link is can't be read; nothing was sent.
        """
        route = await self._routes.route(client_id)
        if route is None:
            raise not_connected(client_id)
        order = Order(
            sender=self._routes.coordinator,
            client_id=client_id,
            namespace=namespace,
            command=command,
        )
        word = await self._word_of(route.coordinator, command.command_id, order)
        if word is None:
            if await self._is_withdrawn(node, namespace, command.command_id):
                raise ClientAbsentError(f"the coordinator that holds {client_id} does not answer")
            return route
        if word.link is None:
            raise ClientAbsentError(word.absent)
        return Route(coordinator=route.coordinator, link=LinkId(word.link))

    async def _word_of(self, to: CoordinatorId, id: str, letter: Order | Signal) -> Word | None:
        word: asyncio.Future[Word] = asyncio.get_running_loop().create_future()
        self._words[id] = word
        try:
            if not await self._routes.post(to, letter.model_dump_json(exclude_none=True)):
                return None
            async with asyncio.timeout(self._word_within_s):
                return await word
        except (TimeoutError, StoreUnavailableError):
            return None  # it may have been posted, read, and done
        finally:
            del self._words[id]

    @staticmethod
    async def _is_withdrawn(node: Carrier, namespace: Namespace | None, command_id: str) -> bool:
        if namespace is None:
            return True  # without evidence nobody can tell, and nothing rests on it
        try:
            return await node.withdraw(namespace, command_id)
        except StoreUnavailableError:
            return False

    async def tell(self, client_id: ClientId, message: wire.ToAgent) -> None:
        """Have a message sent that nobody waits on.

        Raises:
            ClientAbsentError: If the agent can't be reached.
        """
        letter = Passage(client_id=client_id, message=message)
        try:
            route = await self._routes.route(client_id)
            posted = route is not None and await self._routes.post(
                route.coordinator, letter.model_dump_json(exclude_none=True)
            )
        except StoreUnavailableError as error:
            raise ClientAbsentError(f"agent {client_id} is out of reach: {error.detail}") from error
        if not posted:
            raise not_connected(client_id)

    async def signal(self, client_id: ClientId, message: wire.ToAgent) -> None:
        """Have a message sent, and hear that it was.

        Raises:
            ClientAbsentError: If it was not, or nobody says that it was.
            StoreUnavailableError: If where its link is can't be read; nothing was sent.
        """
        route = await self._routes.route(client_id)
        if route is None:
            raise not_connected(client_id)
        letter = Signal(
            sender=self._routes.coordinator,
            signal_id=f"signal-{secrets.token_hex(8)}",
            client_id=client_id,
            message=message,
        )
        word = await self._word_of(route.coordinator, letter.signal_id, letter)
        if word is None:
            raise ClientAbsentError(f"the coordinator that holds {client_id} does not answer")
        if word.link is None:
            raise ClientAbsentError(word.absent)

    # Of jobs, and of sessions

    async def write(
        self, letter: AboutJobs | AboutPolls, *, to: CoordinatorId | None = None
    ) -> bool:
        """Write to a coordinator, or to all others; whether it arrives nobody knows.

        False if that one is not there.

        Raises:
            StoreUnavailableError: If it can't be posted.
        """
        text = letter.model_dump_json(exclude_none=True)
        if to is None:
            await self._routes.post_others(text)
            return True
        return await self._routes.post(to, text)

    async def is_there(self, coordinator: CoordinatorId) -> bool:
        """Tell whether a coordinator is there. Raises StoreUnavailableError."""
        return await self._routes.is_there(coordinator)

    async def holder(self, client_id: ClientId) -> CoordinatorId | None:
        """Return which coordinator has an agent's link. Raises StoreUnavailableError."""
        route = await self._routes.route(client_id)
        return None if route is None else route.coordinator

    # Those of the others

    def forwards(self, command_id: str) -> bool:
        """See `Forwarding.forwards`."""
        return self._forwarding.forwards(command_id)

    async def pass_on(self, node: Carrier, client_id: ClientId, answer: Answer) -> bool:
        """See `Forwarding.pass_on`."""
        return await self._forwarding.pass_on(node, client_id, answer)

    def _take_in(self, letter: Word) -> None:
        word = self._words.get(letter.command_id)
        if word is not None and not word.done():
            word.set_result(letter)

    # The loops

    async def _read(self, node: Carrier) -> None:
        while True:
            try:
                for text in await self._routes.receive():
                    await self._open(node, text)
            except StoreUnavailableError as error:
                log.warning("relay.store_unavailable", reason=error.detail)
                await asyncio.sleep(_PAUSE_S)

    async def _open(self, node: Carrier, text: str) -> None:
        try:
            await self._do(node, letters.validate_json(text))
        except ValidationError as error:
            log.warning("relay.unreadable", problems=error.error_count())
        except (ClientAbsentError, StoreUnavailableError) as error:
            # Who waits for this letter learns it by hearing nothing.
            log.warning("relay.not_done", reason=error.detail)

    async def _do(self, node: Carrier, letter: AnyLetter) -> None:
        match letter:
            case Order():
                await self._forwarding.order(node, letter)
            case Word():
                self._take_in(letter)
            case Passage(client_id=client_id, message=message):
                await node.tell_here(ClientId(client_id), message)
            case Signal():
                await self._forwarding.signal(node, letter)
            case Reply(client_id=client_id, answer=answer, noted=noted):
                await node.taken_in(ClientId(client_id), answer, noted=noted)
            case Change() | Wish() | Granted():
                self.about_jobs(letter)
            case Poll() | Polled():
                self.about_polls(letter)
            case _:
                assert_never(letter)

    async def _stay(self, node: Carrier) -> None:
        while True:
            try:
                closed = await self._routes.renew(node.links())
                if closed:
                    await self.left_behind(closed)
                await self._look_for_lost(node)
            except StoreUnavailableError as error:
                log.warning("relay.store_unavailable", reason=error.detail)
            await asyncio.sleep(self._routes.lease_s / _RENEWALS_PER_LEASE)

    async def _look_for_lost(self, node: Carrier) -> None:
        """Fail what was sent on a link elsewhere that is there no more."""
        waiting = node.sent_through_others()
        for client_id in {sent.client_id for sent in waiting}:
            route = await self._routes.route(client_id)
            for sent in waiting:
                if sent.client_id == client_id and not _is_at(sent, route):
                    sent.fail()


async def _say_nothing(links: Links) -> None:
    pass


def _is_at(sent: SentCommand, route: Route | None) -> bool:
    return route is not None and (sent.through, sent.link) == (route.coordinator, route.link)
