"""A farm whose agents' socket listens, and the agents' end of it, whatever that is dialled by."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from agent.connecting import Dial, longpoll, websocket
from agent.link import FarmLink
from agent.machine.events import Heard, LinkDown, LinkUp
from farm.api.agent_links import AgentLinks
from farm.api.agent_tokens import AgentTokens
from farm.api.agents import agent_route
from farm.api.errors import problems
from farm.api.link_deps import LinkDeps, LinkRules
from farm.api.polling import LongPolls, poll_routes
from farm.api.request_state import PRINCIPAL, Principal
from farm.api.routes import add_routes
from farm.api.serving import ApiRunner
from farm.core.model import ClientId, Namespace
from farm.manager.admission import Registrations
from farm.manager.agent_news import AgentNews
from farm.manager.disconnecting import Disconnects
from farm.protocol import messages as wire
from farm.stores.redis import RedisRegistry
from tests.jobs.farm import WINDOW_S, Farm, farm_on, until

A = ClientId("a")
MAX_FRAME = 65_536


@dataclass
class Served:
    """A farm whose agents' socket listens."""

    farm: Farm
    links: AgentLinks
    tokens: AgentTokens
    registrations: Registrations
    url: str
    bearer: Principal
    before: int = 0
    """The number of the last event before."""


BEARER = Principal(token_id="token-1", scope="agent", namespace=Namespace("default"))


@asynccontextmanager
async def serving(
    directory: Path,
    port: int = 0,
    *,
    grace_s: float | None = None,
    registry: RedisRegistry | None = None,
    name: str | None = None,
    bearer: Principal = BEARER,
    probation: bool = False,
) -> AsyncIterator[Served]:
    async with farm_on(directory, registry=registry, name=name) as farm:
        tokens = AgentTokens()
        registrations = Registrations(
            farm.registry, farm.clock, tell=farm.events.publish, probation=probation
        )
        links = AgentLinks(
            LinkDeps(
                registry=farm.registry,
                registrations=registrations,
                app_node=farm.node,
                dispatcher=farm.dispatcher,
                recorder=farm.recorder,
                interventions=farm.interventions,
                news=AgentNews(farm.events),
                tokens=tokens,
                disconnects=Disconnects(farm.manager, farm.clock, grace_s=grace_s),
                sharing=None if name is None else farm.sharing,
                clock=farm.clock,
                channel_refused=lambda *_: None,
                rules=LinkRules(
                    heartbeat_interval_s=2.5,
                    window_s=WINDOW_S,
                    max_frame_bytes=MAX_FRAME,
                    coordinator=name or "farm",
                ),
            )
        )

        @web.middleware
        async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.headers.get("Authorization") != "Bearer good":
                raise web.HTTPUnauthorized
            request[PRINCIPAL] = here.bearer
            return await handler(request)

        here = Served(farm, links, tokens, registrations, "", bearer)
        polls = LongPolls(links)
        app = web.Application(middlewares=[problems, admit])
        add_routes(app, (agent_route(links.serve), *poll_routes(polls)))
        runner = ApiRunner(app, shutdown_timeout=1)
        await runner.setup()
        try:
            async with asyncio.TaskGroup() as group:
                sessions = group.create_task(polls.run())
                await web.TCPSite(runner, "127.0.0.1", port).start()
                here.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                here.before = farm.events.last()
                yield here
                await links.close_all()
                sessions.cancel()
        finally:
            await runner.cleanup()


@dataclass
class Dialled:
    """An agent's end."""

    link: FarmLink
    told: list[LinkUp | LinkDown | Heard] = field(default_factory=list)

    def heard(self, kind: type) -> list[Any]:
        return [
            e.message for e in self.told if isinstance(e, Heard) and isinstance(e.message, kind)
        ]

    def count(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.told)

    async def hello(self, **changes: Any) -> None:
        values: dict[str, Any] = {
            "client_id": "a",
            "instance": "i",
            "epoch": "browser-1",
            "capacity": wire.Capacity(max_concurrency=1, max_windows=2),
        }
        await self.link.send(wire.Hello(**(values | changes)))

    async def raw(self, text: str) -> None:
        """Send a text that may be no message."""
        connection = self.link._connection
        assert connection is not None
        await connection.send(text)

    async def hang_up(self) -> None:
        """End the connection without a word."""
        connection: Any = self.link._connection
        if hasattr(connection, "_socket"):
            await connection._socket.close()
        else:
            await connection.over()

    async def greeted(self, **changes: Any) -> wire.Welcome:
        await until(lambda: self.count(LinkUp) > self.count(LinkDown))
        before = len(self.heard(wire.Welcome))
        await self.hello(**changes)
        await until(lambda: len(self.heard(wire.Welcome)) > before)
        welcome: wire.Welcome = self.heard(wire.Welcome)[-1]
        return welcome


WAYS: list[Dial] = [websocket]


@pytest.fixture(autouse=True, params=[websocket, longpoll], ids=["websocket", "longpoll"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds for every transport."""
    WAYS[:] = [request.param]
    yield
    WAYS[:] = [websocket]


@asynccontextmanager
async def dialling(url: str, secret: str = "good") -> AsyncIterator[Dialled]:
    headers = {"Authorization": f"Bearer {secret}"}
    async with aiohttp.ClientSession(headers=headers) as session, asyncio.TaskGroup() as group:
        agent = Dialled(FarmLink(session, url, dials=WAYS))
        task = group.create_task(agent.link.run(agent.told.append))
        yield agent
        task.cancel()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
async def agent(served: Served) -> AsyncIterator[Dialled]:
    async with dialling(served.url) as agent:
        yield agent


async def client(served: Served) -> Any:
    snapshot = await served.farm.registry.snapshot(now=served.farm.now)
    return next((c for c in snapshot.clients if c.client_id == A), None)


def tab(token: wire.Token | None = None) -> wire.ContextReport:
    return wire.ContextReport(context_id="T1", window_id="W1", clean=token is None, token=token)


async def begun(served: Served, agent: Dialled) -> tuple[str, wire.Command]:
    job_id = await served.farm.submit()
    await until(lambda: agent.heard(wire.Command))
    order = agent.heard(wire.Command)[0]
    assert order.body.kind == "open_window"
    window = wire.WindowReport(window_id="W1", profile=order.body.profile)
    await agent.link.send(
        wire.Report(epoch_number=1, number=1, windows=(window,), contexts=(tab(),))
    )
    value = {"window_id": "W1", "context_id": "T1"}
    await agent.link.send(
        wire.Result(command_id=order.command_id, outcome="succeeded", value=value)
    )
    await until(lambda: len(agent.heard(wire.Command)) == 2)
    return job_id, agent.heard(wire.Command)[1]


def succeeded(run: wire.Command, seq: int) -> wire.Result:
    assert isinstance(run.body, wire.RunPlan)
    return wire.Result(
        command_id=run.command_id,
        attempt_id=run.body.plan.attempt_id,
        token=run.token,
        seq=seq,
        outcome="succeeded",
    )
