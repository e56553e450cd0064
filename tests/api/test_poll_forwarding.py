"""Requests of an agent's session that come to another coordinator than the one that holds it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from farm.api import poll_forwarding
from farm.api.poll_forwarding import PollForwarding
from farm.api.poll_socket import PollSocket
from farm.api.request_state import Principal
from farm.core.model import Namespace
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError
from farm.manager.delivery import AppNode
from farm.manager.relay import Relay
from farm.protocol.polling import Exchange, Exchanged
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisCommandLog, RedisRegistry, RedisRoutes
from tests.patience import PATIENCE_S
from tests.stores.conftest import new_redis_registry, redis_url

__all__ = ["new_redis_registry", "redis_url"]

NewRegistry = Callable[[int], Awaitable[RedisRegistry]]
TOKEN = "tok_of_the_agent"


@dataclass(eq=False)
class Holder:
    """A coordinator that holds one session, and serves as the others ask."""

    forwarding: PollForwarding
    socket: PollSocket
    routes: RedisRoutes
    loops: "list[asyncio.Task[None]]"

    @property
    def session(self) -> str:
        return self.forwarding.name_of("poll_1")

    async def serve(self, session: str, token_id: str, said: Exchange | None) -> Exchanged | None:
        if (session, token_id) != (self.session, TOKEN):
            raise NotFoundError("there is no such session")
        if said is None:
            await self.socket.close()
            return None
        return await self.socket.exchange(said)

    def die(self) -> None:
        for loop in self.loops:
            loop.cancel()


@asynccontextmanager
async def coordinators(
    new_registry: NewRegistry, *, lease_s: float = 30.0
) -> AsyncIterator[tuple[Holder, Holder]]:
    registry = await new_registry(1)
    made = []
    async with asyncio.TaskGroup() as group:
        for name in ("one", "two"):
            routes = RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)
            await routes.renew(())
            relay = Relay(routes)
            node = AppNode(commands=RedisCommandLog(registry), relay=relay)
            bearer = Principal(token_id=TOKEN, scope="agent", namespace=Namespace("default"))
            socket = PollSocket(bearer, silence_s=1000)
            holder = Holder(PollForwarding(relay), socket, routes, [])
            holder.loops = [
                group.create_task(node.run()),
                group.create_task(holder.forwarding.run(holder.serve)),
            ]
            made.append(holder)
        async with asyncio.timeout(PATIENCE_S):
            yield made[0], made[1]
        for holder in made:
            holder.die()


async def test_what_is_asked_elsewhere_is_answered_by_who_holds_the_session(
    new_redis_registry: NewRegistry,
) -> None:
    async with coordinators(new_redis_registry) as (one, two):
        said = Exchange(seq=1, messages=("hello", "report"))
        given = await two.forwarding.ask(one.session, TOKEN, said)
        assert given == Exchanged(seq=1, messages=(), ack=2)
        texts = one.socket.texts()
        assert [await anext(texts), await anext(texts)] == ["hello", "report"]
        async with asyncio.TaskGroup() as group:
            waits = Exchange(seq=3, ack=0, wait_s=20)
            waiting = group.create_task(two.forwarding.ask(one.session, TOKEN, waits))
            await one.socket.send("welcome")
        assert waiting.result() == Exchanged(seq=1, messages=("welcome",), ack=2)


async def test_a_session_is_ended_from_elsewhere(new_redis_registry: NewRegistry) -> None:
    async with coordinators(new_redis_registry) as (one, two):
        assert await two.forwarding.ask(one.session, TOKEN, None) is None
        assert [text async for text in one.socket.texts()] == []


async def test_a_gap_is_refused_as_it_is_by_who_holds_the_session(
    new_redis_registry: NewRegistry,
) -> None:
    async with coordinators(new_redis_registry) as (one, two):
        with pytest.raises(ConflictError, match="message 1 is missing") as refused:
            await two.forwarding.ask(one.session, TOKEN, Exchange(seq=2, messages=("b",)))
        assert refused.value.context == {"has": 0}


async def test_nobody_else_s_session_is_opened_by_another_way_in(
    new_redis_registry: NewRegistry,
) -> None:
    async with coordinators(new_redis_registry) as (one, two):
        for session, token_id in (
            (one.session, "tok_of_another"),
            ("poll_2@one", TOKEN),
            ("poll_1@nobody", TOKEN),
            ("poll_1", TOKEN),
            (two.session, TOKEN),
        ):
            with pytest.raises(NotFoundError):
                await two.forwarding.ask(session, token_id, Exchange())


async def test_who_waits_learns_of_the_end_of_who_holds_the_session(
    new_redis_registry: NewRegistry,
) -> None:
    async with coordinators(new_redis_registry, lease_s=0.4) as (one, two):
        one.die()
        with pytest.raises(NotFoundError):
            await two.forwarding.ask(one.session, TOKEN, Exchange(wait_s=20))


async def test_who_hears_nothing_in_time_may_ask_again(
    new_redis_registry: NewRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_forwarding, "_ON_THE_WAY_S", 0.2)
    async with coordinators(new_redis_registry) as (one, two):
        one.loops[1].cancel()
        with pytest.raises(StoreUnavailableError):
            await two.forwarding.ask(one.session, TOKEN, Exchange())
