"""One tab, watched: its pictures on a channel, and what people in control do, in the page."""

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import Any, Literal, assert_never

import structlog
from playwright.async_api import Error as PlaywrightError
from pydantic import ValidationError

from agent.chromium.control import Act as HumanKind
from agent.chromium.drops import Drops
from agent.chromium.hands import Hands
from agent.chromium.screencast import Picture, Screencast
from agent.chromium.shielding import within
from agent.chromium.tabs import End, Tab
from agent.machine.control import Move, OutOfPlaceError
from agent.ports import Channel, ChannelClosed
from farm.protocol.live import (
    Act,
    Closed,
    Control,
    Drop,
    Frame,
    Input,
    Leave,
    LetGo,
    Mouse,
    Refused,
    Text,
    Took,
    Want,
    to_tab,
)

_log = structlog.get_logger(__name__)
_QUEUE = 256
"""So many acts wait for a page that is busy; what comes then is refused."""
_ACT_S = 5.0
_SESSION_S = 5.0
_NEWS_S = 0.3

Reason = Literal[
    "tab_closed", "tab_crashed", "task_over", "browser_lost", "not_understood", "unavailable"
]
_GONE: dict[End, Reason] = {
    End.CLOSED: "tab_closed",
    End.CRASHED: "tab_crashed",
    End.LOST: "browser_lost",
    End.FLOODED: "tab_crashed",
}
_JOURNALLED: dict[str, HumanKind] = {
    "mouse": "pointer",
    "wheel": "wheel",
    "key": "key",
    "text": "key",
    "touch": "touch",
    "drop": "drop",
}


class Watch:
    """One channel's life on one tab."""

    def __init__(self, tab: Tab, channel: Channel, place: Path) -> None:
        """`place` is a directory whose files the browser may read, and which goes when it goes."""
        self._tab = tab
        self._task_over = tab.task_over
        self._channel = channel
        self._drops = Drops(tab, place)
        self._bare = contextlib.AsyncExitStack()
        self._is_bare = False
        self._seq = 0
        self._took = 0
        self._room = asyncio.Event()
        self._moved = asyncio.Event()
        self._deeds: asyncio.Queue[Input | LetGo] = asyncio.Queue(_QUEUE)
        self._files: dict[int, Path] = {}

    async def run(self) -> None:
        """Serve the channel until it, or the tab, ends; says on it why, and never raises."""
        try:
            async with asyncio.timeout(_SESSION_S):
                session = await self._tab.page.context.new_cdp_session(self._tab.page)
        except (PlaywrightError, TimeoutError) as error:
            await self._say_closed(await self._why(error), "the tab can't be watched")
            return
        hands = Hands(session)
        control = self._tab.control
        unlisten = control.listen(self._moved.set)
        control.hands.add(hands.let_go)
        try:
            await self._serve(Screencast(session, partial(self._show, hands)), hands)
        finally:
            unlisten()
            control.hands.discard(hands.let_go)
            await hands.let_go()
            await self._undress(bare=False)
            with contextlib.suppress(PlaywrightError):
                await within(_SESSION_S, session.detach())

    async def _serve(self, cast: Screencast, hands: Hands) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(cast.run(), name="live.pictures"),
                    group.create_task(self._act(hands), name="live.acts"),
                    group.create_task(self._tell_phases(hands), name="live.phases"),
                    group.create_task(self._until_tab_ends(), name="live.end"),
                ]
                await self._read(cast)
                for helper in helpers:
                    helper.cancel()
        except* ChannelClosed as closed:
            _log.info("live.over", reason=str(closed.exceptions[0]))
        except* PlaywrightError as failed:
            await self._say_closed(await self._why(failed.exceptions[0]), "the page is gone")
        except* ValidationError:
            await self._say_closed("not_understood", "this agent does not know what it was sent")

    # What the farm says

    async def _read(self, cast: Screencast) -> None:
        async for text, payload in self._channel.receive():
            message = to_tab.validate_json(text)
            match message:
                case Want():
                    await self._undress(bare=not message.overlay)
                    cast.want(message)
                case Took(seq=seq):
                    self._took = max(self._took, seq)
                    self._room.set()
                case Input():
                    await self._take(message, payload)
                case LetGo():
                    await self._deeds.put(message)
                case Leave(by=by):
                    self._leave(by)
                case _:
                    assert_never(message)

    async def _undress(self, *, bare: bool) -> None:
        """Have the overlay out of the page, or in it again."""
        if self._tab.overlay is None or bare is self._is_bare:
            return
        self._is_bare = bare
        if bare:
            await self._bare.enter_async_context(self._tab.overlay.bare())
        else:
            await self._bare.aclose()
            await self._tab.overlay.dress()

    def _leave(self, by: str) -> None:
        control = self._tab.control
        if control.by == by:
            with contextlib.suppress(OutOfPlaceError):
                control.move(Move.LEAVE, by)

    # What people do

    async def _take(self, deed: Input, payload: memoryview | None) -> None:
        if (why := self._refusal(deed)) is not None:
            await self._refuse(deed, why)
            return
        if isinstance(deed.act, Drop):
            try:
                self._files[id(deed)] = await self._drops.keep(deed.act.name, payload or b"")
            except (ValueError, OSError) as error:
                await self._refuse(deed, str(error))
                return
        try:
            self._deeds.put_nowait(deed)
        except asyncio.QueueFull:
            self._files.pop(id(deed), None)
            await self._refuse(deed, "the page does not keep up")

    def _refusal(self, deed: Input) -> str | None:
        control = self._tab.control
        if not control.human_may_act:
            return "take over first: nobody is in control"
        if control.by not in ("", deed.by):
            return f"{control.by} is in control"
        return None

    async def _act(self, hands: Hands) -> None:
        while True:
            deed = await self._deeds.get()
            if isinstance(deed, LetGo):
                await hands.let_go()
                continue
            file = self._files.pop(id(deed), None)
            if (why := self._refusal(deed)) is not None:
                await self._refuse(deed, why)
                continue
            if (why := await self._do(hands, deed, file)) is not None:
                await self._refuse(deed, why)
                continue
            self._tab.control.acted(_kind_of(deed.act))

    @staticmethod
    async def _do(hands: Hands, deed: Input, file: Path | None) -> str | None:
        """Do it to the page; return why it may not have been done, if so."""
        try:
            answered = await within(_ACT_S, hands.do(deed.act, file))
        except PlaywrightError:
            # Between two pages there is none to do it to. That the tab has ended is told elsewhere.
            return "the page was just changing: do it again"
        return None if answered else "the page does not answer"

    async def _refuse(self, deed: Input, why: str) -> None:
        if isinstance(deed.act, Mouse) and deed.act.act == "move":
            return  # comes in hundreds, and its maker can see that nothing follows
        await self._send(Refused(what=deed.act.kind, why=why))

    # What is shown

    async def _show(self, hands: Hands, picture: Picture) -> None:
        self._seq += 1
        hands.see(picture.page_width, picture.page_height)
        frame = Frame(seq=self._seq, page_width=picture.page_width, page_height=picture.page_height)
        await self._channel.send(frame.model_dump_json(), picture.jpeg)
        while self._took < self._seq:
            self._room.clear()
            await self._room.wait()

    async def _tell_phases(self, hands: Hands) -> None:
        while True:
            self._moved.clear()
            control = self._tab.control
            if not control.human_may_act:
                await hands.let_go()
            await self._send(
                Control(phase=control.holder.value, by=control.by[:200], asked=control.asked[:2000])
            )
            await self._moved.wait()

    async def _until_tab_ends(self) -> None:
        ends: set[asyncio.Future[Any]] = {self._tab.ended, self._task_over}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        over = not self._tab.ended.done()
        reason: Reason = "task_over" if over else _GONE[self._tab.ended.result()]
        await self._say_closed(reason, "")
        raise ChannelClosed(reason)

    async def _why(self, _error: BaseException) -> Reason:
        """Return why a page failed us; word that it has ended may come a moment later."""
        await asyncio.wait({self._tab.ended}, timeout=_NEWS_S)
        return _GONE[self._tab.ended.result()] if self._tab.ended.done() else "unavailable"

    async def _say_closed(self, reason: Reason, detail: str) -> None:
        with contextlib.suppress(ChannelClosed):
            await self._send(Closed(reason=reason, detail=detail))

    async def _send(self, said: Control | Refused | Closed) -> None:
        await self._channel.send(said.model_dump_json())


def _kind_of(act: Act) -> HumanKind:
    if isinstance(act, Text) and act.pasted:
        return "paste"
    return _JOURNALLED[act.kind]
