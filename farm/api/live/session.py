"""One viewer's WebSocket: what it says is a stranger's word, and nobody waits for it."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Protocol, assert_never

import structlog
from aiohttp import WSCloseCode
from pydantic import ValidationError

from farm.api.duplex import Duplex
from farm.api.live.hub import Hub
from farm.api.live.links import Grant
from farm.api.live.places import Place, Places
from farm.api.live.viewers import Viewer
from farm.api.live.watched import NotWatchableError, Watched
from farm.clock import Clock
from farm.core.model import Client, is_link_of
from farm.errors import FarmError
from farm.protocol.channels import FrameError, unpack
from farm.protocol.live import (
    MAX_DROP_BYTES,
    Ask,
    Closed,
    Drop,
    FromViewer,
    Input,
    Look,
    Shown,
    from_viewer,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

MAX_FRAME_BYTES = MAX_DROP_BYTES + 64 * 1024
_SEND_S = 10.0
"""A viewer that takes nothing for so long is let go."""
_CHECK_S = 1.0
"""How soon a link that has expired, or a task that has ended, ends the pictures."""
_LOOK_S = 0.1
_ASK_S = 0.2
_GARBAGE = 5
"""So often a viewer may say what means nothing."""


class Acts(Protocol):
    """What viewers in control may want of the job in a tab."""

    async def __call__(self, place: Place, action: str, by: str) -> str | None:
        """Do it; return None, or why it was not done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Serves viewers."""

    hub: Hub
    places: Places
    acts: Acts
    clock: Clock
    coordinator: str | None = None
    """Where several share the agents; each shows the tabs of those that are linked to it."""

    def shows(self, agent: Client) -> bool:
        """Tell whether an agent's tabs are shown here, or would be if it had a link."""
        return (
            self.coordinator is None
            or agent.link is None
            or is_link_of(self.coordinator, agent.link)
        )

    async def serve(self, socket: Duplex, place: Place, grant: Grant) -> None:
        """Show a tab on a socket until either side ends it."""
        viewer = Viewer(grant)
        try:
            async with self.hub.looking(place, viewer) as watched:
                log.info("live.begun", context=place.context, viewer=viewer.name, mode=grant.mode)
                session = _Session(self, socket, watched, viewer)
                await session.run()
                log.info("live.ended", context=place.context, viewer=viewer.name)
        except NotWatchableError as error:
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_SEND_S):
                    await socket.send(error.closed.model_dump_json())
        await socket.close()


class _Session:
    def __init__(
        self, sessions: Sessions, socket: Duplex, watched: Watched, viewer: Viewer
    ) -> None:
        self._sessions = sessions
        self._socket = socket
        self._watched = watched
        self._viewer = viewer
        self._garbage = 0
        self._scene = ""

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(self._write(), name="live.write"),
                    group.create_task(self._check(), name="live.check"),
                ]
                await self._read()
                for helper in helpers:
                    helper.cancel()
        except* (ConnectionError, TimeoutError, _OverError):
            pass  # the viewer has gone, takes nothing, or has been told why there is no more

    # What it is sent

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._say()
            shot = self._watched.latest
            due_in = self._viewer.due(shot, loop.time())
            if shot is not None and due_in == 0:
                await self._send(shot.packed)
                self._viewer.sent(shot, loop.time())
                continue
            await self._viewer.stirred(due_in)

    async def _say(self) -> None:
        """Say what is not a picture."""
        viewer = self._viewer
        scene = self._watched.scene(viewer, self._left()).model_dump_json()
        if scene != self._scene:
            self._scene = scene
            await self._send(scene)
        for refused in viewer.refusals():
            await self._send(refused.model_dump_json())
        if viewer.closed is not None:
            await self._send(viewer.closed.model_dump_json())
            await self._socket.close()
            raise _OverError

    def _left(self) -> float | None:
        """Return how long the link opens something, to ten seconds: it is not said each second."""
        expires_at = self._viewer.grant.expires_at
        if expires_at is None:
            return None
        return max(0.0, (expires_at - self._sessions.clock()) // 10 * 10)

    async def _send(self, message: str | bytes) -> None:
        async with asyncio.timeout(_SEND_S):
            await self._socket.send(message)

    async def _check(self) -> None:
        """End the pictures when the link's time is over, or the tab is no longer lent as it was."""
        sessions, viewer = self._sessions, self._viewer
        while True:
            await asyncio.sleep(_CHECK_S)
            expires_at = viewer.grant.expires_at
            if expires_at is not None and sessions.clock() >= expires_at:
                viewer.close(Closed(reason="expired", detail="the link's time is over"))
            with contextlib.suppress(FarmError):  # a store that is away tells nothing
                agent = await sessions.places.agent_of(self._watched.place)
                if agent is None:
                    over = "the task that had this tab is over"
                    viewer.close(Closed(reason="task_over", detail=over))
                elif not sessions.shows(agent):
                    moved = "the agent is linked to another coordinator now"
                    viewer.close(Closed(reason="elsewhere", detail=moved))

    # What it says

    async def _read(self) -> None:
        async for message in self._socket.messages():
            try:
                if isinstance(message, str):
                    await self._hear(from_viewer.validate_json(message), None)
                else:
                    text, payload = unpack(message)
                    await self._hear(from_viewer.validate_json(text), payload)
            except (ValidationError, FrameError) as error:
                await self._garbled(error)

    async def _garbled(self, error: Exception) -> None:
        self._garbage += 1
        log.warning("live.garbled", viewer=self._viewer.name, kind=type(error).__name__)
        if self._garbage >= _GARBAGE:
            await self._socket.close(WSCloseCode.POLICY_VIOLATION, "this means nothing")
            raise _OverError
        self._viewer.refuse("message", "this is no message of a viewer")

    async def _hear(self, message: FromViewer, payload: memoryview | None) -> None:
        viewer, watched = self._viewer, self._watched
        match message:
            case Look():
                await watched.looks(viewer, message)
                # Each may begin the capture anew: who changes its mind all the time waits.
                await asyncio.sleep(_LOOK_S)
            case Shown(seq=seq):
                await watched.shown(viewer, seq)
            case Input():
                if isinstance(message.act, Drop) is (payload is None):
                    viewer.refuse(message.act.kind, "a dropped file, and nothing else, has bytes")
                else:
                    await watched.act(viewer, message, payload)
            case Ask(action=action):
                await self._ask(action)
                await asyncio.sleep(_ASK_S)  # each is written into the job's history
            case _:
                assert_never(message)

    async def _ask(self, action: str) -> None:
        viewer, watched = self._viewer, self._watched
        if viewer.grant.mode != "control":
            viewer.refuse(action, "this link is for looking only")
            return
        if action in ("hand_back", "stop"):
            await watched.let_go()
        why = await self._sessions.acts(watched.place, action, viewer.name)
        if why is not None:
            viewer.refuse(action, why)


class _OverError(Exception):
    """The viewer has been told why there is nothing more."""
