"""A tab that people look at: many viewers, one channel to its agent, and only its last picture."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import assert_never

import structlog

from farm.api.channels import AgentChannels, Channel, ChannelRefusedError
from farm.api.live.places import Place
from farm.api.live.viewers import Shot, Viewer
from farm.errors import ClientAbsentError, StoreUnavailableError
from farm.protocol.channels import pack
from farm.protocol.live import (
    Closed,
    Control,
    Frame,
    Input,
    Leave,
    LetGo,
    Look,
    Refused,
    Scene,
    Took,
    Want,
    from_tab,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_LOST = Closed(reason="agent_absent", detail="the agent's channel broke off")


class NotWatchableError(Exception):
    """A tab can't be shown; `closed` is what the viewer is told."""

    def __init__(self, closed: Closed) -> None:
        super().__init__(closed.detail)
        self.closed = closed


class Watched:
    """A tab that somebody looks at."""

    def __init__(self, place: Place, channels: AgentChannels, over: Callable[[], None]) -> None:
        """`over` is called when nobody can look at it any more."""
        self.place = place
        self.viewers: list[Viewer] = []
        self.latest: Shot | None = None
        self.control: Control | None = None
        self._channels = channels
        self._over = over
        self._opening: asyncio.Future[Channel] | None = None
        self._want: Want | None = None
        self._took = 0
        self._closed: Closed | None = None
        self._moved = asyncio.Event()

    # The channel

    async def ready(self) -> None:
        """Return when the agent's channel is open.

        Raises:
            NotWatchableError: If it can't be opened; says why.
        """
        if self._opening is not None:
            await asyncio.shield(self._opening)
            return
        self._opening = asyncio.get_running_loop().create_future()
        try:
            channel = await self._open()
        except BaseException as error:
            failed = error if isinstance(error, NotWatchableError) else NotWatchableError(_LOST)
            self._opening.set_exception(failed)
            self._opening.exception()  # looked at, so that nobody is warned
            self._over()
            raise
        self._opening.set_result(channel)

    async def _open(self) -> Channel:
        place = self.place
        try:
            return await self._channels.open(
                place.client_id,
                kind="live",
                context_id=place.context_id,
                epoch=place.epoch,
                hear=self._hear,
                over=self._on_over,
            )
        except (ClientAbsentError, StoreUnavailableError) as error:
            absent = Closed(reason="agent_absent", detail=error.detail[:500])
            raise NotWatchableError(absent) from error
        except ChannelRefusedError as error:
            refused = Closed(reason="unavailable", detail=str(error)[:500])
            raise NotWatchableError(refused) from error

    async def _hear(self, text: bytes | str, payload: memoryview | None) -> None:
        said = from_tab.validate_json(text)
        match said:
            case Frame():
                if payload is None or bytes(payload[:3]) != b"\xff\xd8\xff":
                    raise ValueError("a picture that is no JPEG")
                self.latest = Shot(said, pack(said.model_dump_json(), bytes(payload)))
            case Control():
                self.control = said
                self._moved.set()
            case Refused():
                for viewer in self.viewers:
                    if self._in_control(viewer):
                        viewer.refuse(said.what, said.why)
            case Closed():
                self.end(said)
            case _:
                assert_never(said)
        self.stir()

    def _on_over(self) -> None:
        self.end(_LOST)

    def end(self, closed: Closed) -> None:
        """There is nothing more to be seen; tell every viewer why."""
        self._closed = self._closed or closed
        self._moved.set()
        self._over()
        for viewer in self.viewers:
            viewer.close(self._closed)

    async def close(self) -> None:
        """End the channel, as nobody looks any more."""
        self._over()
        if self._opening is not None and self._opening.done() and not self._opening.exception():
            await self._opening.result().close()

    async def _send(self, text: str, payload: memoryview | None = None) -> None:
        if self._opening is None or self._closed is not None:
            return
        if self._opening.done() and self._opening.exception() is not None:
            return
        try:
            channel = await asyncio.shield(self._opening)
            await channel.send(text, payload)
        except ConnectionError:
            self.end(_LOST)

    # Viewers

    def add(self, viewer: Viewer) -> None:
        """Let somebody look, under a name that nobody else here has."""
        taken = {other.name for other in self.viewers}
        number = 1
        while viewer.name in taken:
            number += 1
            viewer.name = f"{viewer.grant.name}-{number}"
        self.viewers.append(viewer)
        self.stir()

    def stir(self) -> None:
        """Let every viewer see whether there is something new for it."""
        for viewer in self.viewers:
            viewer.stir()

    async def looks(self, viewer: Viewer, look: Look) -> None:
        """A viewer wants pictures of this kind from now on."""
        viewer.look = look
        viewer.stir()
        await self._apply_wishes()

    async def _apply_wishes(self) -> None:
        """Ask the agent for what the most demanding viewer wants."""
        looks = [v.look for v in self.viewers if v.look is not None and v.looks]
        if not looks:
            return
        want = Want(
            width=_bounded(max(look.width for look in looks)),
            height=_bounded(max(look.height for look in looks)),
            fps=max(look.fps for look in looks),
            overlay=any(look.overlay for look in looks),
        )
        if want != self._want:
            self._want = want
            await self._send(want.model_dump_json())

    async def shown(self, viewer: Viewer, seq: int) -> None:
        """A viewer has drawn a picture; the first to do so makes room for the next."""
        if self.latest is None or not viewer.shown < seq <= self.latest.frame.seq:
            return
        viewer.shown = seq
        viewer.stir()
        if seq > self._took:
            self._took = seq
            await self._send(Took(seq=seq).model_dump_json())

    async def act(self, viewer: Viewer, deed: Input, payload: memoryview | None) -> None:
        """Let a viewer do something to the page, if it is in control."""
        if viewer.grant.mode != "control":
            viewer.refuse(deed.act.kind, "this link is for looking only")
        elif not self._in_control(viewer):
            viewer.refuse(deed.act.kind, self._why_not())
        else:
            said = deed.model_copy(update={"by": viewer.name})
            await self._send(said.model_dump_json(), payload)

    def _in_control(self, viewer: Viewer) -> bool:
        control = self.control
        # A step that asks for a person asks for anybody who may.
        return control is not None and control.phase == "human" and control.by in ("", viewer.name)

    def _why_not(self) -> str:
        if self.control is None or self.control.phase != "human":
            return "take over first: nobody is in control"
        return f"{self.control.by} is in control"

    async def let_go(self) -> None:
        """Whoever may have held something down does so no longer."""
        await self._send(LetGo().model_dump_json())

    def scene(self, viewer: Viewer, expires_in_s: float | None) -> Scene:
        """Return what a viewer is to know."""
        control, place = self.control, self.place
        return Scene(
            context=place.context,
            mode=viewer.grant.mode,
            you=viewer.name,
            phase=None if control is None else control.phase,
            by="" if control is None else control.by,
            asked="" if control is None else control.asked,
            job_id=place.job_id,
            job=place.job,
            label=place.label,
            viewers=tuple(other.name for other in self.viewers),
            expires_in_s=expires_in_s,
        )

    async def remove(self, viewer: Viewer, grace_s: float) -> None:
        """Somebody has gone. If it was in control it has a while to come back.

        Whoever comes back under the same link has the same name, and so is in control again.
        """
        self.viewers.remove(viewer)
        self.stir()
        if not self._held_by(viewer.name) or self._closed is not None:
            await self._apply_wishes()
            return
        await self.let_go()
        await self._apply_wishes()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._held_by(viewer.name) and self._closed is None:
                    self._moved.clear()
                    await self._moved.wait()
        if self._held_by(viewer.name) and all(v.name != viewer.name for v in self.viewers):
            log.info("live.left_in_control", context=self.place.context, by=viewer.name)
            await self._send(Leave(by=viewer.name).model_dump_json())

    def _held_by(self, name: str) -> bool:
        control = self.control
        return (
            control is not None
            and control.phase in ("human", "taking_over")
            and (control.by == name)
        )


def _bounded(pixels: int) -> int:
    """Return a size within what agents take, in steps, so that not every resize begins anew."""
    return min(max(-(-pixels // 160) * 160, 160), 3840)
