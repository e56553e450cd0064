"""A manager over a registry, and agents that open and report what they are asked to.

The clock moves only when a test moves it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from farm.core.commands import Retention
from farm.core.model import (
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Instant,
    LinkId,
    Window,
    WindowId,
)
from farm.core.reservation import Denial
from farm.manager import WorkerContextManager
from farm.manager.delivery import AppNode
from farm.protocol import messages as wire
from farm.stores.memory import MemoryCommandLog, MemoryRegistry
from tests.patience import PATIENCE_S
from tests.stores.pool import NS, T0, WINDOW_S, hello

RETENTION = Retention(keep=3, keep_s=1000, payload_bytes=200)
ROOM = Capacity(max_concurrency=10, max_windows=4, max_tabs_per_window=2, max_flows=2)


@dataclass(eq=False)
class Agent:
    """Keeps windows, tabs and flows; `silent` ones take orders and do nothing."""

    floor: "Floor"
    client: Client
    silent: bool = False
    reports: bool = True
    windows: dict[WindowId, Window] = field(default_factory=dict)
    contexts: dict[ContextId, Context] = field(default_factory=dict)
    orders: list[wire.Command] = field(default_factory=list)
    opened: int = 0
    number: int = 0

    @property
    def client_id(self) -> ClientId:
        return self.client.client_id

    def commands(self, kind: type) -> list[wire.Command]:
        return [order for order in self.orders if isinstance(order.body, kind)]

    async def has(self, *tabs: str | Context, identity: str | None = None) -> None:
        """Have these besides; a name `W1.a` is a tab of window W1, any other one a flow."""
        for tab in tabs:
            context = tab if isinstance(tab, Context) else named(tab)
            self.contexts[context.context_id] = context
            if context.window_id is not None and context.window_id not in self.windows:
                self.windows[context.window_id] = Window(
                    window_id=context.window_id, identity=identity
                )
        await self.report()

    async def report(self) -> None:
        self.number += 1
        assert self.client.link is not None
        outcome = await self.floor.registry.report(
            self.client_id,
            self.client.link,
            epoch=self.client.epoch,
            number=self.number,
            windows=list(self.windows.values()),
            contexts=list(self.contexts.values()),
            now=self.floor.now,
        )
        assert not isinstance(outcome, Denial)

    async def receive(self, message: wire.ToAgent) -> None:
        await asyncio.sleep(0)
        if not isinstance(message, wire.Command):
            return
        self.orders.append(message)
        if self.silent:
            return
        match message.body:
            case wire.OpenWindow(identity=identity, profile=profile):
                window_id = WindowId(f"{self.client_id}-W{self.opened}")
                self.windows[window_id] = Window(
                    window_id=window_id, identity=identity, profile=profile
                )
                await self.open(message, window_id)
            case wire.OpenTab(window_id=of):
                await self.open(message, WindowId(of))
            case wire.CreateFlow():
                await self.open(message, None)
            case _:
                return

    async def open(self, order: wire.Command, window_id: WindowId | None) -> None:
        self.opened += 1
        context_id = ContextId(f"{self.client_id}-new{self.opened}")
        self.contexts[context_id] = Context(context_id=context_id, window_id=window_id)
        if self.reports:
            await self.report()
        result = wire.Result(
            command_id=order.command_id, outcome="succeeded", value={"context_id": context_id}
        )
        await self.floor.node.answered(self.client_id, result)


def named(tab: str, **changes: Any) -> Context:
    window, dot, _ = tab.partition(".")
    return Context(
        context_id=ContextId(tab), window_id=WindowId(window) if dot else None, **changes
    )


class Floor:
    """Registry, node and clock."""

    def __init__(self) -> None:
        self.registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)
        self.now = T0
        self.log = MemoryCommandLog(since=T0, retention=RETENTION)
        self.node = AppNode(commands=self.log, clock=lambda: self.now)
        self.links = 0
        self.ids = iter(range(1_000_000))

    def passes(self, seconds: float) -> None:
        self.now = Instant(self.now + seconds)

    def manager(self, **options: Any) -> WorkerContextManager:
        given: dict[str, Any] = {
            "context_registry": self.registry,
            "connection_registry": self.registry,
            "browser_window_registry": self.registry,
            "app_node": self.node,
            "clock": lambda: self.now,
            "new_id": lambda: f"cmd-{next(self.ids)}",
            "provision_timeout_s": 5.0,
        }
        return WorkerContextManager(**(given | options))

    async def agent(self, client_id: str = "a", *tabs: str, **changes: Any) -> Agent:
        self.links += 1
        given: dict[str, Any] = {"link": f"link-{self.links}", "capacity": ROOM}
        client = hello(client_id, **(given | changes))
        found = await self.registry.register(
            client, epoch_name=f"{client_id}-1", highest_token=None, now=self.now
        )
        assert isinstance(found, Client)
        agent = Agent(self, found)
        assert found.link is not None
        await self.node.attach(found.client_id, LinkId(found.link), agent.receive)
        await agent.has(*tabs)
        return agent

    async def console(self, client_id: str = "con", *flows: str, **changes: Any) -> Agent:
        return await self.agent(client_id, *flows, client_type=ClientType.CONSOLE, **changes)

    async def client(self, client_id: str = "a") -> Client:
        snapshot = await self.registry.snapshot(now=self.now)
        return next(c for c in snapshot.clients if c.client_id == client_id)

    async def used(self) -> int:
        snapshot = await self.registry.snapshot(now=self.now)
        return sum(client.used_slots() for client in snapshot.clients)


async def turns(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0)


__all__ = ["NS", "ROOM", "Agent", "Floor", "named", "turns"]
