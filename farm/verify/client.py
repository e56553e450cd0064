"""A probe client: an agent by the wire alone, with no browser behind it."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import aiohttp

from farm.core.model import Capacity, ClientId, Namespace
from farm.protocol import messages as wire

_CLOSE = aiohttp.ClientWSTimeout(ws_close=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial:
    """How a probe client reaches the farm."""

    session: aiohttp.ClientSession
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A tab that the client says it has."""

    window_id: str
    identity: str | None = None
    profile: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a probe client is to be like."""

    metadata: Mapping[str, Any]
    capacity: Capacity
    tabs: int = 0
    closes: bool = False
    """A tab that is released is closed; else it is there for the next."""


class ProbeClient:
    """Reports tabs, obeys what it is sent, and remembers it. Runs are left to who has made it.

    It checks no token: what the farm should not have sent is to be seen here.
    """

    def __init__(self, client_id: ClientId, namespace: Namespace, script: Script) -> None:
        self.client_id = client_id
        self.script = script
        self.orders: list[wire.Command] = []
        """The commands that have come, in order."""
        self.runs: asyncio.Queue[wire.Command] = asyncio.Queue()
        self.may_open = asyncio.Event()
        """While it is not set, what is to be opened is taken up and not opened."""
        self.may_open.set()
        self.trouble: str | None = None
        """Why its last link came to nothing."""
        self.welcome: wire.Welcome | None = None
        self._namespace = namespace
        self._instance = secrets.token_hex(8)
        self._epoch = secrets.token_hex(8)
        self._tabs = {f"tab-{n}": Tab(window_id=f"window-{n}") for n in range(script.tabs)}
        self._made = script.tabs
        self._number = 0
        self._silent = False
        self._stored: dict[str, int] = {}
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._heard = asyncio.Condition()

    # One link

    async def live(self, dial: Dial) -> None:
        """Dial, and stay until either side ends the link; why it failed is `trouble`.

        Sets no clock: who waits for it to be let in does.
        """
        try:
            async with dial.session.ws_connect(
                dial.url, headers=dial.headers, timeout=_CLOSE
            ) as socket:
                await self._talk(socket)
        except* (aiohttp.ClientError, ConnectionError, TimeoutError) as failed:
            self.trouble = str(failed.exceptions[0]) or type(failed.exceptions[0]).__name__

    async def _talk(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self.welcome = socket, None
        async with asyncio.TaskGroup() as group:
            await self.hello()
            beats = group.create_task(self._beat(), name=f"{self.client_id} beats")
            async for frame in socket:
                if frame.type is aiohttp.WSMsgType.TEXT and not self._silent:
                    message = wire.to_agent.validate_json(frame.data)
                    group.create_task(self._hear(message), name=f"{self.client_id} hears")
            beats.cancel()

    async def hang_up(self) -> None:
        """End the link without a word."""
        if self._socket is not None:
            await self._socket.close()

    async def leave(self) -> None:
        """Say goodbye; the farm ends the link."""
        await self.say(wire.Bye(reason="the verification is over"))

    def fall_silent(self) -> None:
        """Say nothing any more, on a link that stays open."""
        self._silent = True

    async def say(self, message: wire.FromAgent) -> None:
        """Send a message, unless it has fallen silent. Raises ConnectionError without a link."""
        if self._silent:
            return
        if self._socket is None:
            raise ConnectionError(f"{self.client_id} has no link")
        await self._socket.send_str(message.model_dump_json())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what it hears to make the condition hold. Sets no clock."""
        async with self._heard:
            await self._heard.wait_for(condition)

    # What it says

    async def hello(self) -> None:
        """Say who it is, and that it runs nothing."""
        capacity = self.script.capacity
        await self.say(
            wire.Hello(
                client_id=self.client_id,
                instance=self._instance,
                epoch=self._epoch,
                namespaces=(self._namespace,),
                metadata=dict(self.script.metadata),
                capacity=wire.Capacity(
                    max_concurrency=capacity.max_concurrency,
                    max_windows=capacity.max_windows,
                    max_tabs_per_window=capacity.max_tabs_per_window,
                ),
                browser="none: farm verify",
            )
        )

    async def begin_new_life(self) -> None:
        """Say, as after a crash of its browser, that nothing of before is there any more."""
        self._epoch, self._number = secrets.token_hex(8), 0
        await self.hello()

    async def report(self) -> None:
        """Tell the tabs it has."""
        if self.welcome is None:
            return
        self._number += 1
        windows = {
            tab.window_id: wire.WindowReport(
                window_id=tab.window_id, identity=tab.identity, profile=tab.profile
            )
            for tab in self._tabs.values()
        }
        await self.say(
            wire.Report(
                epoch_number=self.welcome.epoch_number,
                number=self._number,
                windows=tuple(windows.values()),
                contexts=tuple(
                    wire.ContextReport(context_id=context_id, window_id=tab.window_id)
                    for context_id, tab in self._tabs.items()
                ),
            )
        )

    async def _beat(self) -> None:
        while True:
            interval_s = 1.0 if self.welcome is None else self.welcome.heartbeat_interval_s
            await asyncio.sleep(interval_s)
            if self.welcome is not None:
                await self.say(wire.Heartbeat(epoch_number=self.welcome.epoch_number))

    # What it hears

    def opening(self) -> int:
        """Count the windows and tabs it has been told to open."""
        return sum(isinstance(o.body, wire.OpenWindow | wire.OpenTab) for o in self.orders)

    def stored(self, command_id: str) -> int:
        """Return up to which number the farm has confirmed what was said of a command."""
        return self._stored.get(command_id, 0)

    async def _hear(self, message: wire.ToAgent) -> None:
        match message:
            case wire.Welcome():
                self.welcome, self._number = message, 0
                await self.report()
            case wire.Refused():
                self.trouble = f"{message.reason}: {message.detail}"
            case wire.Command():
                self.orders.append(message)
                await self._obey(message)
            case wire.Stored():
                self._stored[message.command_id] = max(message.seq, self.stored(message.command_id))
            case wire.Ping(nonce=nonce):
                await self.say(wire.Pong(nonce=nonce))
            case wire.Cancel() | wire.Intervene() | wire.Drain() | wire.OpenChannel():
                pass
            case _:
                assert_never(message)
        async with self._heard:
            self._heard.notify_all()

    async def _obey(self, order: wire.Command) -> None:
        match order.body:
            case wire.OpenWindow() as body:
                self._made += 1
                window = f"window-{self._made}"
                tab = Tab(window_id=window, identity=body.identity, profile=body.profile)
                await self._open(order, tab)
            case wire.OpenTab() as body:
                self._made += 1
                beside = (t for t in self._tabs.values() if t.window_id == body.window_id)
                await self._open(order, next(beside, Tab(window_id=body.window_id)))
            case wire.RunPlan():
                self.runs.put_nowait(order)
            case wire.Release():
                await self._release(str(order.context_id))
            case wire.Probe():
                await self._succeed(order, {})
            case wire.CreateFlow():
                await self.say(wire.Ack(command_id=order.command_id, refused="not_understood"))
            case _:
                assert_never(order.body)

    async def _open(self, order: wire.Command, tab: Tab) -> None:
        context_id = f"tab-{self._made}"
        await self.may_open.wait()
        self._tabs[context_id] = tab
        await self.report()
        await self._succeed(order, {"context_id": context_id, "window_id": tab.window_id})

    async def _release(self, context_id: str) -> None:
        if self.script.closes:
            self._tabs.pop(context_id, None)
        await self.report()

    async def _succeed(self, order: wire.Command, value: dict[str, Any]) -> None:
        await self.say(wire.Result(command_id=order.command_id, outcome="succeeded", value=value))
