"""Coordinators of one Redis, each with the links of its agents."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from farm.core.commands import CommandEvidence
from farm.core.model import ClientId, LinkId
from farm.manager.awaited import SentCommand
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.evidence import Admission
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisCommandLog, RedisRegistry, RedisRoutes
from tests.patience import PATIENCE_S
from tests.stores.pool import NS, T0, A

NewRegistry = Callable[[int], Awaitable[RedisRegistry]]


@dataclass(eq=False)
class Coordinator:
    """One coordinator's end of delivery, and what its agents are sent."""

    name: str
    registry: RedisRegistry
    routes: RedisRoutes
    node: AppNode
    sent: list[wire.ToAgent] = field(default_factory=list)

    async def has(self, link: str = "link-1", client_id: ClientId = A) -> None:
        async def receive(message: wire.ToAgent) -> None:
            self.sent.append(message)

        await self.node.attach(client_id, LinkId(link), receive)

    @property
    def orders(self) -> list[str]:
        return [one.command_id for one in self.sent if isinstance(one, wire.Command)]

    async def sends(
        self, command_id: str = "c", *, outlives_link: bool = False, here: bool = False
    ) -> SentCommand:
        return await self.node.send(
            A,
            command(command_id, wire.Probe()),
            outlives_link=outlives_link,
            admission=Admission(namespace=NS),
            here=here,
        )

    async def evidence(self, command_id: str = "c") -> CommandEvidence:
        found = (await self.node.answers(NS, command_id)).evidence
        assert found is not None
        return found


@pytest.fixture
async def registry(new_redis_registry: NewRegistry) -> RedisRegistry:
    return await new_redis_registry(1)


@asynccontextmanager
async def coordinators(
    registry: RedisRegistry, *names: str, word_within_s: float = 5.0, lease_s: float = 30.0
) -> AsyncIterator[list[Coordinator]]:
    made = []
    for name in names:
        routes = RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)
        relay = Relay(routes, word_within_s=word_within_s)
        node = AppNode(commands=RedisCommandLog(registry), relay=relay, clock=lambda: T0)
        made.append(Coordinator(name=name, registry=registry, routes=routes, node=node))
        await routes.renew(())
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loops = [group.create_task(one.node.run()) for one in made]
        yield made
        for loop in loops:
            loop.cancel()
