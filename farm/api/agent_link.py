"""One link of one agent, from `hello` to its end, by whatever transport."""

import asyncio
import contextlib
import secrets
from typing import assert_never

import structlog

from farm.api import convert
from farm.api.agent_messages import Unreadable, read
from farm.api.agent_reports import AgentReports
from farm.api.knocking import enrolment, knock
from farm.api.link_deps import LinkDeps
from farm.api.request_state import Principal
from farm.api.sockets import Closing, Socket
from farm.core.admission import Refusal, RefusedFor
from farm.core.model import ClientId, LinkId, link_of
from farm.core.pools import capacity_flaw
from farm.errors import ClientAbsentError, StoreUnavailableError
from farm.manager.admission import Registration
from farm.manager.agent_news import LeavingReason
from farm.protocol import messages as wire

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_SEND_QUEUE = 1024
"""An agent that leaves so many messages unread is cut off."""
_HELLO_WITHIN_S = 10.0
_CLOSE_S = 2.0


class AgentLink:
    """One connection of one agent: a reader and a writer in one task group."""

    def __init__(self, deps: LinkDeps, socket: Socket, bearer: Principal) -> None:
        self._deps = deps
        self._socket = socket
        self._bearer = bearer
        self._id: LinkId = link_of(deps.rules.coordinator, secrets.token_hex(8))
        self._registration: Registration | None = None
        self._outbox: asyncio.Queue[wire.ToAgent] = asyncio.Queue(_SEND_QUEUE)
        self._cut = asyncio.Event()
        self._reports = AgentReports(deps, self._id, self.send)

    @property
    def _client_id(self) -> ClientId | None:
        return None if self._registration is None else self._registration.client.client_id

    def is_of(self, client_id: ClientId, link: LinkId) -> bool:
        """Tell whether it is this one."""
        return (self._client_id, self._id) == (client_id, link)

    def cut(self) -> None:
        """Have the link closed, whatever its agent does; it may dial again."""
        self._cut.set()

    async def run(self) -> None:
        """Serve the link to its end."""
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write(), name="agent link writer")
                cutter = group.create_task(self._wait_for_cut(), name="agent link cutter")
                await self._read()
                writer.cancel()
                cutter.cancel()
        except* (ConnectionError, TimeoutError, ClientAbsentError, _CutOffError) as group_error:
            who = {} if self._client_id is None else {"client_id": self._client_id}
            log.info("link.broken", **who, reason=str(group_error.exceptions[0]))
        finally:
            await self._gone()
        await self.close(Closing.DIAL_AGAIN)

    async def _wait_for_cut(self) -> None:
        await self._cut.wait()
        raise _CutOffError("the farm has given the agent up, or let it in on another link")

    async def close(self, why: Closing = Closing.FARM_STOPS) -> None:
        """End the link from this side, whether or not its agent still answers."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(why)

    async def send(self, message: wire.ToAgent) -> None:
        """Queue a message.

        Raises:
            ClientAbsentError: If the agent has stopped reading.
        """
        try:
            self._outbox.put_nowait(message)
        except asyncio.QueueFull:
            raise ClientAbsentError(f"agent {self._client_id} has stopped reading") from None
        self._reports.sent(message)

    async def _write(self) -> None:
        while True:
            message = await self._outbox.get()
            await self._socket.send(message.model_dump_json(exclude_none=True))

    async def _read(self) -> None:
        async with asyncio.timeout(_HELLO_WITHIN_S) as limit:
            async for text in self._socket.texts():
                message = read(text)
                if isinstance(message, Unreadable):
                    await self._pass_over(message)
                    continue
                await self._handle(message)
                if self._client_id is not None:
                    limit.reschedule(None)

    async def _pass_over(self, message: Unreadable) -> None:
        """Log what can't be understood; who can't be let in for it is told so."""
        log.warning("link.unreadable", problems=message.problems, first=message.first)
        if message.op == "hello":
            detail = f"hello: {message.first}"
            refusal = Refusal(reason=RefusedFor.NOT_UNDERSTOOD, detail=detail, retry=False)
            await self._refuse(refusal)

    async def _handle(self, message: wire.FromAgent) -> None:
        try:
            if isinstance(message, wire.Hello):
                await self._welcome(message)
            else:
                await self._hear(message)
        except StoreUnavailableError as error:
            # What was not stored is not confirmed; the agent sends it again on its next link.
            log.warning("link.store_unavailable", reason=error.detail)
            raise _CutOffError("the store is unavailable") from error

    async def _hear(self, message: wire.FromAgent) -> None:
        registration = self._registration
        if registration is None or not await self._deps.registry.heard(
            registration.client.client_id, self._id, now=self._deps.clock()
        ):
            raise _CutOffError("not the current link of a known agent")
        if self._deps.shared is not None and not self._deps.shared.alive():
            # Whoever answers it makes it think that it is heard, and others take it for lost.
            raise _CutOffError("this coordinator's lease has lapsed")
        if isinstance(message, wire.Heartbeat):
            # Only in answer: an agent that the farm does not hear must not think it is heard.
            await self.send(wire.Ping(nonce=message.nonce))
            return
        await self._take(registration, message)

    async def _take(self, registration: Registration, message: wire.FromAgent) -> None:
        deps, client_id = self._deps, registration.client.client_id
        match message:
            case wire.Report():
                await self._reports.take(registration.client, message)
            case wire.Events():
                await self._events(client_id, message)
            case wire.Result():
                await self._result(client_id, message)
            case wire.Ack():
                await deps.app_node.answered(client_id, message)
            case wire.CapacityAnnounced(max_concurrency=slots):
                await self._announced(client_id, slots)
            case wire.Pong(nonce=nonce):
                await deps.app_node.ponged(client_id, self._id, nonce)
            case wire.Bye():
                await self._leave(registration, message)
            case _:
                self._note(client_id, message)

    async def _leave(self, registration: Registration, bye: wire.Bye) -> None:
        client_id = registration.client.client_id
        log.info("agent.left", client_id=client_id, reason=bye.reason)
        _tell_of_user_windows(client_id, bye.user_windows_lost)
        await self._deps.dispatcher.agents.is_gone(client_id, "the agent has left")
        await registration.end(LeavingReason.DEREGISTERED)
        await self._socket.close()

    def _note(
        self,
        client_id: ClientId,
        message: wire.Intervened | wire.Error | wire.Heartbeat | wire.Hello | wire.ChannelRefused,
    ) -> None:
        match message:
            case wire.Intervened():
                self._deps.interventions.answered(client_id, message)
            case wire.Error():
                log.warning("agent.error", client_id=client_id, detail=message.detail)
            case wire.ChannelRefused():
                self._deps.channel_refused(client_id, message)
            case wire.Heartbeat() | wire.Hello():
                pass  # that it came is what counts
            case _:
                assert_never(message)

    async def _welcome(self, hello: wire.Hello) -> None:
        deps = self._deps
        if self._client_id not in (None, hello.client_id):
            raise _CutOffError("one link is for one agent")
        # What another coordinator has sent through this one is that one's to ask for.
        running = [
            entry
            for entry in hello.running
            if not deps.app_node.sends_for_another(entry.command_id)
        ]
        transport = self._socket.transport
        registration = await deps.registrations.register(
            knock(deps, hello, running, link=self._id, transport=transport),
            enrolment(self._bearer),
        )
        if isinstance(registration, Refusal):
            await self._refuse(registration)
            return
        registered, self._registration = registration.client, registration
        client_id = registered.client_id
        self._reports.begin()
        await deps.tokens.note(client_id, self._bearer.token_id)
        await deps.dispatcher.agents.comes(client_id, running)
        deps.interventions.advertised(client_id, hello.capabilities)
        await self.send(
            wire.Welcome(
                epoch_number=registered.epoch,
                capacity=convert.capacity(registered.capacity),
                heartbeat_interval_s=deps.rules.heartbeat_interval_s,
                window_s=deps.rules.window_s,
                shared=deps.shared is not None,
            )
        )
        # From here on an earlier link is not used any more: what it would carry would be lost after
        # the comparison that follows, and nobody would miss it.
        await deps.app_node.attach(client_id, self._id, self.send)
        await deps.dispatcher.agents.is_back(client_id, hello.epoch, running, self.send)
        deps.dispatcher.wake()
        _tell_of_user_windows(client_id, hello.user_windows_lost)
        log.info(
            "agent.welcome",
            client_id=client_id,
            epoch=registered.epoch,
            browser=hello.browser,
            slots=registered.capacity.max_concurrency,
            transport=transport,
        )

    async def _refuse(self, refusal: Refusal) -> None:
        refused = wire.Refused(
            reason=refusal.reason.value, detail=refusal.detail, retry=refusal.retry
        )
        await self._socket.send(refused.model_dump_json())
        await self._socket.close()

    async def _announced(self, client_id: ClientId, slots: int) -> None:
        if flaw := capacity_flaw(slots):
            # It may come back with what it said at first.
            await self._refuse(Refusal(reason=RefusedFor.CAPACITY, detail=flaw))
        elif await self._deps.registry.set_advertised_capacity(client_id, self._id, slots):
            log.info("agent.capacity", client_id=client_id, slots=slots)

    async def _events(self, client_id: ClientId, events: wire.Events) -> None:
        if self._deps.app_node.sends_for_another(events.command_id):
            # Who sends a run to another coordinator's agent has its result, and keeps no more.
            seq = max((entry.seq for entry in events.entries), default=0)
            await self.send(wire.Stored(command_id=events.command_id, seq=seq))
            return
        stored = await self._deps.recorder.record(client_id, events)
        if stored.refused:
            await self._ask_anew_of(events.attempt_id)
        await self.send(stored)

    async def _result(self, client_id: ClientId, result: wire.Result) -> None:
        if not self._deps.recorder.has_all_of(result):
            raise _CutOffError("a result came before what it rests on")
        theirs = self._deps.app_node.sends_for_another(result.command_id)
        if await self._deps.app_node.answered(client_id, result):
            if theirs:
                await self.send(wire.Stored(command_id=result.command_id, done=True))
            return
        attempt_id = result.attempt_id
        if attempt_id is None or await self._deps.dispatcher.agents.attempt_is_over(attempt_id):
            await self.send(wire.Stored(command_id=result.command_id, refused=True, done=True))
        else:
            await self._ask_anew_of(attempt_id)

    async def _ask_anew_of(self, attempt_id: str) -> None:
        """Have the agent say at `hello` what it runs, where that is what nobody looks after."""
        if await self._deps.dispatcher.agents.nobody_has(attempt_id):
            raise _CutOffError("nobody looks after what it runs")

    async def _gone(self) -> None:
        if self._registration is None:
            return
        deps, client_id = self._deps, self._registration.client.client_id
        await deps.app_node.detach(client_id, self._id)
        try:
            if await self._registration.end():
                log.info("agent.link_closed", client_id=client_id)
                await deps.dispatcher.agents.link_closed(client_id)
        except StoreUnavailableError as error:
            log.warning("link.store_unavailable", reason=error.detail)
        # Whether it was the current one is asked again when anything is released.
        for namespace in sorted(self._bearer.namespaces):
            await deps.disconnects.closed(namespace, client_id, self._id)


def _tell_of_user_windows(client_id: ClientId, lost: int) -> None:
    if lost:
        log.warning("agent.user_windows_lost", client_id=client_id, windows=lost)


class _CutOffError(Exception):
    """The link is to be closed; the agent dials again."""
