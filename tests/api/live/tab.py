"""A tab that is lent, and its agent's end of a live channel, by the wire alone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from farm.api.live.places import in_path
from farm.clock import system_clock
from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientType,
    Context,
    ContextId,
    LinkId,
    Namespace,
    Request,
    TaskId,
    Window,
    WindowId,
)
from farm.core.reservation import Denial
from farm.protocol import messages as wire
from farm.protocol.channels import pack, unpack
from tests.api.stack import AGENT, DEFAULT, Stack
from tests.patience import PATIENCE_S

JPEG = b"\xff\xd8\xff\xe0" + b"picture" * 10
TAB = ContextId("T1")


class StandInAgent:
    """Registered with one tab; dials what it is asked to, unless told otherwise."""

    def __init__(self, stack: Stack, link: str = "farm/link") -> None:
        self.stack = stack
        self.link = LinkId(link)
        self.asked: asyncio.Queue[wire.OpenChannel] = asyncio.Queue()
        self.epoch = 0

    async def arrive(self, *, attach: bool = True) -> None:
        """Register, report one tab, and be reachable."""
        registry = self.stack.registry
        client = await registry.register(
            Client(
                client_id=AGENT,
                client_type=ClientType.BROWSER,
                link=self.link,
                epoch=0,
                instance="i",
                namespaces=(DEFAULT, Namespace("other")),
                metadata={},
                capacity=Capacity(max_concurrency=2, max_windows=2, max_tabs_per_window=2),
                seen_at=system_clock(),
            ),
            epoch_name="e",
            highest_token=None,
            now=system_clock(),
        )
        assert isinstance(client, Client)
        self.epoch = client.epoch
        window = WindowId("W1")
        await registry.report(
            AGENT,
            self.link,
            epoch=client.epoch,
            number=1,
            windows=[Window(window_id=window, identity="shared")],
            contexts=[Context(context_id=TAB, window_id=window)],
            now=system_clock(),
        )
        if attach:
            await self.stack.node.attach(AGENT, self.link, self._told)

    async def _told(self, message: wire.ToAgent) -> None:
        if isinstance(message, wire.OpenChannel):
            self.asked.put_nowait(message)

    async def lend(self, namespace: Namespace = DEFAULT) -> Assignment:
        """Have its tab lent to a task."""
        assignment = await self.stack.registry.assign(
            Request(namespace=namespace, task_id=TaskId("task"), identity="shared"),
            AGENT,
            TAB,
            now=system_clock(),
            timeout_s=60,
        )
        assert not isinstance(assignment, Denial)
        return assignment

    @property
    def name(self) -> str:
        """What its tab is watched as."""
        return f"{TAB}@{self.epoch}@{AGENT}"

    @asynccontextmanager
    async def channel(self, at: Stack | None = None) -> AsyncIterator["Channel"]:
        """Dial the channel it is asked for next, at this coordinator or another."""
        stack = at or self.stack
        async with asyncio.timeout(PATIENCE_S):
            asked = await self.asked.get()
        assert (asked.kind, asked.context_id, asked.epoch_number) == ("live", TAB, self.epoch)
        url = f"{stack.url}/v1/agent/channels/{asked.channel_id}"
        async with stack.http.ws_connect(url, headers=stack.as_agent(), max_msg_size=0) as socket:
            yield Channel(socket)


class Channel:
    """The agent's end."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def shows(self, seq: int, jpeg: bytes = JPEG) -> None:
        header = {"op": "frame", "seq": seq, "page_width": 1280, "page_height": 720}
        await self.socket.send_bytes(pack(json.dumps(header), jpeg))

    async def says(self, **message: Any) -> None:
        await self.socket.send_str(json.dumps(message))

    async def hears(self, op: str) -> dict[str, Any]:
        """Return the next message of a kind; others are passed over."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.socket.receive()
                if frame.type is aiohttp.WSMsgType.BINARY:
                    head, rest = unpack(frame.data)
                    message = {**json.loads(head), "bytes": bytes(rest)}
                else:
                    assert frame.type is aiohttp.WSMsgType.TEXT, frame
                    message = json.loads(frame.data)
                if message["op"] == op:
                    return dict(message)

    async def ends(self) -> None:
        """Wait until the farm ends it."""
        async with asyncio.timeout(PATIENCE_S):
            async for _ in self.socket:
                pass


class Viewer:
    """A viewer's end, that says only what the test makes it say."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def says(self, **message: Any) -> None:
        await self.socket.send_str(json.dumps(message))

    async def picture(self) -> tuple[dict[str, Any], bytes]:
        """Return the next picture; other messages are passed over."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.socket.receive()
                if frame.type is aiohttp.WSMsgType.BINARY:
                    head, rest = unpack(frame.data)
                    return json.loads(head), bytes(rest)
                assert frame.type is aiohttp.WSMsgType.TEXT, frame

    async def hears(self, op: str, **members: Any) -> dict[str, Any]:
        """Return the next message of a kind with these members."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.socket.receive()
                assert frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), frame
                if frame.type is aiohttp.WSMsgType.TEXT:
                    said = json.loads(frame.data)
                    if said["op"] == op and members.items() <= said.items():
                        return dict(said)

    async def ended(self) -> int | None:
        """Wait for the end of the socket; return its code."""
        async with asyncio.timeout(PATIENCE_S):
            async for _ in self.socket:
                pass
        return self.socket.close_code


async def link(stack: Stack, **wanted: Any) -> str:
    """Make a link as an admin; return its path."""
    url = f"{stack.url}/v1/live-links"
    async with stack.http.post(url, json=wanted, headers=stack.as_admin()) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["path"])


@asynccontextmanager
async def viewer(stack: Stack, path: str, **headers: str) -> AsyncIterator[Viewer]:
    """Watch by a link, or with a token in the headers."""
    async with stack.http.ws_connect(stack.url + path, headers=headers) as socket:
        yield Viewer(socket)


def page_of(agent: StandInAgent) -> str:
    """Return the path of the tab's page."""
    return f"/v1/live/{in_path(agent.name)}"
