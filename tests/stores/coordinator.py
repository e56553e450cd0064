"""A coordinator that shares a Redis with others, and holds the link of one agent.

`python -m tests.stores.coordinator URL SHARD NAME HOW LEASE_S`. It prints a line for each thing its
agent is sent. HOW is what then happens: `hangs` for ever, `answers` with an ack and a result, or
`sends` is not for others at all: it sends a command to its own agent, which hangs.
"""

import asyncio
import sys

from farm.clock import steady_clock
from farm.core.model import LinkId
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.evidence import Admission
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisClock, RedisCommandLog, RedisRegistry, RedisRoutes, connect
from tests.stores.pool import NS, WINDOW_S, A

HANGS, ANSWERS, SENDS = "hangs", "answers", "sends"


async def coordinator(url: str, shard: str, name: str, how: str, lease_s: float) -> None:
    registry = RedisRegistry(connect(url), presence_window_s=WINDOW_S, shard=shard)
    await registry.open(store_epoch=1)
    clock = RedisClock(registry.redis, steady=steady_clock)
    await clock.read()
    routes = RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)
    node = AppNode(commands=RedisCommandLog(registry), relay=Relay(routes), clock=clock)
    async with asyncio.TaskGroup() as group:

        async def send(message: wire.ToAgent) -> None:
            assert isinstance(message, wire.Command)
            print(message.command_id, flush=True)
            if how != ANSWERS:
                await asyncio.Event().wait()
            group.create_task(_answer(node, message.command_id))

        await node.attach(A, LinkId(f"link-{name}"), send)
        group.create_task(node.run())
        print("ready", flush=True)
        if how == SENDS:
            order = command(f"of-{name}", wire.Probe())
            await node.send(A, order, admission=Admission(namespace=NS))


async def _answer(node: AppNode, command_id: str) -> None:
    await node.answered(A, wire.Ack(command_id=command_id))
    result = wire.Result(command_id=command_id, outcome="succeeded", value={"by": command_id})
    await node.answered(A, result)


if __name__ == "__main__":
    at, of, named, does, lease = sys.argv[1:]
    asyncio.run(coordinator(at, of, named, does, float(lease)))
