"""The links that agents dial, by whatever transport. One `AgentLink` is one life of it."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import structlog
from aiohttp import web
from pydantic import ValidationError

from farm.api import convert
from farm.api.request_state import Principal
from farm.api.sockets import Closing, Socket, WebSocket
from farm.clock import Clock
from farm.core.admission import Enrolment, Refusal, RefusedFor
from farm.core.model import ClientId, ContextId, LinkId, link_of
from farm.core.pools import capacity_flaw
from farm.core.reservation import Denial
from farm.errors import ClientAbsentError, StoreUnavailableError
from farm.jobs.dispatcher import JobDispatcher
from farm.jobs.interventions import Interventions
from farm.jobs.recorder import Recorder
from farm.jobs.sharing import Sharing
from farm.manager.admission import Knock, Registration, Registrations
from farm.manager.agent_news import AgentNews, LeavingReason
from farm.manager.delivery import AppNode, command
from farm.manager.disconnecting import Disconnects
from farm.protocol import messages as wire
from farm.protocol.recordings import RECORDS, RECORDS_VIDEO
from farm.stores.ports.cluster_events import ClusterEvents
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_SEND_QUEUE = 1024
"""An agent that leaves so many messages unread is cut off."""
_HELLO_WITHIN_S = 10.0
_CLOSE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """How long silence means what; see `farm.config.LinkSettings`."""

    heartbeat_interval_s: float
    window_s: float
    max_frame_bytes: int
    coordinator: str = "farm"
    """Whose links they are; links are named after it."""


class AgentLinks:
    """Lets agents in. Knows which token each connected agent came with."""

    def __init__(
        self,
        *,
        registry: Registry,
        registrations: Registrations,
        app_node: AppNode,
        dispatcher: JobDispatcher,
        recorder: Recorder,
        disconnects: Disconnects,
        interventions: Interventions,
        events: ClusterEvents,
        sharing: Sharing | None = None,
        shared: SharedLedger | None = None,
        channel_refused: Callable[[ClientId, wire.ChannelRefused], None],
        clock: Clock,
        rules: LinkRules,
    ) -> None:
        self.registry = registry
        self.registrations = registrations
        self.app_node = app_node
        self.dispatcher = dispatcher
        self.recorder = recorder
        self.disconnects = disconnects
        self.interventions = interventions
        self.news = AgentNews(events)
        self.sharing = sharing
        self.shared = shared
        self.channel_refused = channel_refused
        self.clock = clock
        self.rules = rules
        self._owners: dict[ClientId, str] = {}
        self._links: set[AgentLink] = set()

    def owns(self, token_id: str, client_id: ClientId) -> bool:
        """Tell whether the agent connected, or last connected, with this token."""
        return self._owners.get(client_id) == token_id

    async def may_act(self, token_id: str, client_id: ClientId) -> bool:
        """Tell whether the agent last connected, here or elsewhere, with this token."""
        if self.shared is None:
            return self.owns(token_id, client_id)
        return await self.shared.token_of_agent(client_id) == token_id

    async def may_use(self, token_id: str, client_id: ClientId) -> None:
        """Note which token an agent has come with."""
        if self.shared is not None:
            await self.shared.note_agent(client_id, token_id)
        self._owners[client_id] = token_id

    async def serve(self, request: web.Request, bearer: Principal) -> web.WebSocketResponse:
        """Run one link on a WebSocket until either side ends it."""
        socket = web.WebSocketResponse(
            max_msg_size=self.rules.max_frame_bytes,
            autoping=True,
            compress=False,
            # Ends a connection that nobody is on the other end of any more.
            heartbeat=self.rules.window_s,
        )
        await socket.prepare(request)
        await self.live(WebSocket(socket), bearer)
        return socket

    async def live(self, socket: Socket, bearer: Principal) -> None:
        """Run one link to its end, whatever it was dialled by."""
        link = AgentLink(self, socket, bearer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def end(self, client_id: ClientId, link: LinkId) -> None:
        """End a link, so that its agent dials again; it is no more registered under it."""
        for one in self._links:
            if one.is_of(client_id, link):
                one.cut()

    async def close_all(self) -> None:
        """Close every link; agents dial again, or give up when the farm does not come back."""
        async with asyncio.TaskGroup() as group:
            for link in self._links:
                group.create_task(link.close(), name="close agent link")


class AgentLink:
    """One connection of one agent: a reader and a writer in one task group."""

    def __init__(self, links: AgentLinks, socket: Socket, bearer: Principal) -> None:
        self._links = links
        self._socket = socket
        self._bearer = bearer
        self._id: LinkId = link_of(links.rules.coordinator, secrets.token_hex(8))
        self._client_id: ClientId | None = None
        self._registration: Registration | None = None
        self._draining: tuple[bool, str] = (False, "")
        """As the registry has it since the last `hello`."""
        self._outbox: asyncio.Queue[wire.ToAgent] = asyncio.Queue(_SEND_QUEUE)
        self._cut = asyncio.Event()
        self._released: dict[str, wire.Token] = {}
        """The releases that the agent has been sent on this link, by context."""

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
        match message:
            case wire.Command(context_id=str(context_id), token=wire.Token() as token, body=body):
                if isinstance(body, wire.Release):
                    self._released[context_id] = token
            case _:
                pass

    async def _write(self) -> None:
        while True:
            message = await self._outbox.get()
            await self._socket.send(message.model_dump_json(exclude_none=True))

    async def _read(self) -> None:
        async with asyncio.timeout(_HELLO_WITHIN_S) as limit:
            async for text in self._socket.texts():
                message = self._parse(text)
                if message is None:
                    continue
                await self._handle(message)
                if self._client_id is not None:
                    limit.reschedule(None)

    @staticmethod
    def _parse(text: str) -> wire.FromAgent | None:
        try:
            return wire.from_agent.validate_json(text)
        except ValidationError as error:
            log.warning("link.unreadable", problems=error.error_count())
            return None

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
        if self._client_id is None or not await self._links.registry.heard(
            self._client_id, self._id, now=self._links.clock()
        ):
            raise _CutOffError("not the current link of a known agent")
        if self._links.shared is not None and not self._links.shared.alive():
            # Whoever answers it makes it think that it is heard, and others take it for lost.
            raise _CutOffError("this coordinator's lease has lapsed")
        if isinstance(message, wire.Heartbeat):
            # Only in answer: an agent that the farm does not hear must not think it is heard.
            await self.send(wire.Ping(nonce=message.nonce))
            return
        await self._take(self._client_id, message)

    async def _take(self, client_id: ClientId, message: wire.FromAgent) -> None:
        links = self._links
        match message:
            case wire.Report():
                await self._report(client_id, message)
            case wire.Events():
                await self._events(client_id, message)
            case wire.Result():
                await self._result(client_id, message)
            case wire.Ack():
                await links.app_node.answered(client_id, message)
            case wire.CapacityAnnounced(max_concurrency=slots):
                await self._announced(client_id, slots)
            case wire.Pong(nonce=nonce):
                await links.app_node.ponged(client_id, self._id, nonce)
            case wire.Bye():
                await self._leave(client_id, message)
            case _:
                self._note(client_id, message)

    async def _leave(self, client_id: ClientId, bye: wire.Bye) -> None:
        log.info("agent.left", client_id=client_id, reason=bye.reason)
        _tell_of_user_windows(client_id, bye.user_windows_lost)
        await self._links.dispatcher.agent_is_gone(client_id, "the agent has left")
        if self._registration is not None:
            await self._registration.end(LeavingReason.DEREGISTERED)
        await self._socket.close()

    def _note(
        self,
        client_id: ClientId,
        message: wire.Intervened | wire.Error | wire.Heartbeat | wire.Hello | wire.ChannelRefused,
    ) -> None:
        match message:
            case wire.Intervened():
                self._links.interventions.answered(client_id, message)
            case wire.Error():
                log.warning("agent.error", client_id=client_id, detail=message.detail)
            case wire.ChannelRefused():
                self._links.channel_refused(client_id, message)
            case wire.Heartbeat() | wire.Hello():
                pass  # that it came is what counts
            case _:
                assert_never(message)

    async def _welcome(self, hello: wire.Hello) -> None:
        links = self._links
        if self._client_id not in (None, hello.client_id):
            raise _CutOffError("one link is for one agent")
        # What another coordinator has sent through this one is that one's to ask for.
        running = [
            entry
            for entry in hello.running
            if not links.app_node.sends_for_another(entry.command_id)
        ]
        registration = await links.registrations.register(
            self._knock(hello, running), _enrolment(self._bearer)
        )
        if isinstance(registration, Refusal):
            await self._refuse(registration)
            return
        registered, self._registration = registration.client, registration
        client_id = registered.client_id
        self._client_id, self._draining = client_id, (False, "")
        await links.may_use(self._bearer.token_id, client_id)
        await links.dispatcher.agent_comes(client_id, running)
        links.interventions.advertised(client_id, hello.capabilities)
        await self.send(
            wire.Welcome(
                epoch_number=registered.epoch,
                capacity=convert.capacity(registered.capacity),
                heartbeat_interval_s=links.rules.heartbeat_interval_s,
                window_s=links.rules.window_s,
                shared=links.shared is not None,
            )
        )
        # From here on an earlier link is not used any more: what it would carry would be lost after
        # the comparison that follows, and nobody would miss it.
        await links.app_node.attach(client_id, self._id, self.send)
        await links.dispatcher.agent_is_back(client_id, hello.epoch, running, self.send)
        links.dispatcher.wake()
        _tell_of_user_windows(client_id, hello.user_windows_lost)
        log.info(
            "agent.welcome",
            client_id=client_id,
            epoch=registered.epoch,
            browser=hello.browser,
            slots=registered.capacity.max_concurrency,
            transport=self._socket.transport,
        )

    def _knock(self, hello: wire.Hello, running: list[wire.Running]) -> Knock:
        sharing = self._links.sharing

        async def kept_out() -> Refusal | None:
            if sharing is None or not await sharing.keeps_out(ClientId(hello.client_id), running):
                return None
            detail = "it runs a job of another coordinator's"
            return Refusal(reason=RefusedFor.RUNS_ELSEWHERE, detail=detail)

        return Knock(
            claim=convert.claim(hello),
            client=convert.client(hello, self._id, self._links.clock()),
            epoch_name=hello.epoch,
            highest_token=convert.token(hello.highest_token),
            transport=self._socket.transport,
            kept_out=kept_out,
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
        elif await self._links.registry.set_advertised_capacity(client_id, self._id, slots):
            log.info("agent.capacity", client_id=client_id, slots=slots)

    async def _report(self, client_id: ClientId, report: wire.Report) -> None:
        if (now := (report.draining, report.draining_because)) != self._draining:
            self._draining = now
            log.info(
                "agent.draining" if report.draining else "agent.takes_again",
                client_id=client_id,
                because=report.draining_because,
            )
            await self._links.registry.set_draining(
                client_id, report.draining, because=report.draining_because
            )
            if self._registration is not None:
                self._links.news.draining(self._registration.client, *now)
        gone = await self._links.registry.report(
            client_id,
            self._id,
            epoch=report.epoch_number,
            number=report.number,
            windows=convert.windows(report),
            contexts=convert.contexts(report),
            now=self._links.clock(),
        )
        if isinstance(gone, Denial):
            return
        self._links.dispatcher.context_is_gone(gone)
        await self._release_forgotten(client_id, report)

    async def _release_forgotten(self, client_id: ClientId, report: wire.Report) -> None:
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
            if token is None or await self._links.registry.holds(client_id, context_id, token):
                continue
            await self.send(
                command(f"release-{context_id}", wire.Release(), context_id=context_id, token=token)
            )

    async def _events(self, client_id: ClientId, events: wire.Events) -> None:
        if self._links.app_node.sends_for_another(events.command_id):
            # Who sends a run to another coordinator's agent has its result, and keeps no more.
            seq = max((entry.seq for entry in events.entries), default=0)
            await self.send(wire.Stored(command_id=events.command_id, seq=seq))
            return
        await self.send(await self._links.recorder.record(client_id, events))

    async def _result(self, client_id: ClientId, result: wire.Result) -> None:
        if not self._links.recorder.has_all_of(result):
            raise _CutOffError("a result came before what it rests on")
        theirs = self._links.app_node.sends_for_another(result.command_id)
        if await self._links.app_node.answered(client_id, result):
            if theirs:
                await self.send(wire.Stored(command_id=result.command_id, done=True))
            return
        attempt_id = result.attempt_id
        if attempt_id is None or await self._links.dispatcher.attempt_is_over(attempt_id):
            await self.send(wire.Stored(command_id=result.command_id, refused=True, done=True))

    async def _gone(self) -> None:
        if self._registration is None:
            return
        links, client_id = self._links, self._registration.client.client_id
        await links.app_node.detach(client_id, self._id)
        try:
            if await self._registration.end():
                log.info("agent.link_closed", client_id=client_id)
                await links.dispatcher.link_closed(client_id)
        except StoreUnavailableError as error:
            log.warning("link.store_unavailable", reason=error.detail)
        # Whether it was the current one is asked again when anything is released.
        for namespace in sorted(self._bearer.namespaces):
            await links.disconnects.closed(namespace, client_id, self._id)


def _enrolment(bearer: Principal) -> Enrolment:
    return Enrolment(
        token_id=bearer.token_id,
        namespaces=bearer.namespaces,
        bounds=bearer.bounds,
        own_metadata=frozenset({RECORDS, RECORDS_VIDEO}),
    )


def _tell_of_user_windows(client_id: ClientId, lost: int) -> None:
    if lost:
        log.warning("agent.user_windows_lost", client_id=client_id, windows=lost)


class _CutOffError(Exception):
    """The link is to be closed; the agent dials again."""
