"""Requests of a session that has come to another coordinator than the one that holds it.

Which one that is, is in the session's name. It is asked by letter, as it is for commands: one
answer from the first coordinator asked, whatever spreads the requests, and an agent that need know
nothing of it. To send the agent on (421) until it meets the right one takes as many requests as
there are coordinators, each time where a balancer spreads requests and not connections.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from farm.errors import ConflictError, NotFoundError, StoreUnavailableError
from farm.jobs.ids import random_id
from farm.manager.letters import AboutPolls, Poll, Polled
from farm.manager.relay import Relay
from farm.protocol.polling import Exchange, Exchanged
from farm.stores.ports.routes import CoordinatorId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_LOOKS_PER_LEASE = 4
"""So often it is looked whether the coordinator asked is still there."""
_ON_THE_WAY_S = 2.0
_AT = "@"

Serve = Callable[[str, str, Exchange | None], Awaitable[Exchanged | None]]
"""(session, token_id, what is said; None ends it) -> what is given, by who holds the session."""


class PollForwarding:
    """Asks the other coordinators, and answers them; `run` is to be run."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._asked: asyncio.Queue[Poll] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[Polled]] = {}
        relay.about_polls = self._hear

    async def run(self, serve: Serve) -> None:
        """Answer the others, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                poll = await self._asked.get()
                group.create_task(self._answer(poll, serve), name=f"answer {poll.request_id}")

    def name_of(self, session: str) -> str:
        """Return a session's name, by which it is found from everywhere."""
        return f"{session}{_AT}{self._relay.coordinator}"

    async def ask(self, session: str, token_id: str, said: Exchange | None) -> Exchanged | None:
        """Have a request answered by who holds the session; see `Serve`.

        Raises:
            NotFoundError: If nobody holds it, or it is another token's.
            ConflictError: See `PollSocket.exchange`.
            StoreUnavailableError: If there is no answer in time; it may have been taken all the
                same, and can be asked again.
        """
        holder = session.partition(_AT)[2]
        if holder in ("", self._relay.coordinator):
            raise _unknown()
        polled = await self._polled(CoordinatorId(holder), session, token_id, said)
        match polled.flaw:
            case "unknown":
                raise _unknown()
            case "gap":
                raise ConflictError(polled.detail, has=polled.has)
            case None:
                return polled.given

    async def _polled(
        self, holder: CoordinatorId, session: str, token_id: str, said: Exchange | None
    ) -> Polled:
        poll = Poll(
            sender=self._relay.coordinator,
            request_id=random_id("poll"),
            session=session,
            token_id=token_id,
            said=said,
        )
        answered: asyncio.Future[Polled] = asyncio.get_running_loop().create_future()
        self._waiting[poll.request_id] = answered
        try:
            if not await self._relay.write(poll, to=holder):
                raise _unknown()
            within_s = _ON_THE_WAY_S + (0.0 if said is None else said.wait_s or 0.0)
            async with asyncio.timeout(within_s):
                await self._while_there(holder, answered)
        except TimeoutError:
            detail = "the coordinator that holds the session does not answer"
            raise StoreUnavailableError(detail) from None
        finally:
            del self._waiting[poll.request_id]
        return answered.result()

    async def _while_there(self, holder: CoordinatorId, answered: "asyncio.Future[Polled]") -> None:
        """Wait for an answer. Raises NotFoundError when there is nobody any more to give it."""
        while not answered.done():
            await asyncio.wait({answered}, timeout=self._relay.lease_s / _LOOKS_PER_LEASE)
            if not answered.done() and not await self._relay.is_there(holder):
                raise _unknown()

    def _hear(self, letter: AboutPolls) -> None:
        match letter:
            case Poll():
                self._asked.put_nowait(letter)
            case Polled(request_id=request_id):
                waiting = self._waiting.get(request_id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(letter)

    async def _answer(self, poll: Poll, serve: Serve) -> None:
        polled = Polled(request_id=poll.request_id)
        try:
            given = await serve(poll.session, poll.token_id, poll.said)
            polled = polled.model_copy(update={"given": given})
        except NotFoundError:
            polled = polled.model_copy(update={"flaw": "unknown"})
        except ConflictError as error:
            has = error.context.get("has")
            polled = polled.model_copy(update={"flaw": "gap", "detail": error.detail, "has": has})
        try:
            await self._relay.write(polled, to=CoordinatorId(poll.sender))
        except StoreUnavailableError as error:
            # Whoever asked hears nothing, and asks again.
            log.warning("poll.not_answered", reason=error.detail)


def _unknown() -> NotFoundError:
    return NotFoundError("there is no such session")
