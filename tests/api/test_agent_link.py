"""The agents' link, dialled by the agent's own end, whatever it is dialled by."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from agent.connecting import Dial, longpoll, websocket
from agent.link import FarmLink
from agent.machine.events import Heard, LinkDown, LinkUp
from agent.ports import LinkRefused
from farm.api import agent_link, convert
from farm.api.agent_links import AgentLinks
from farm.api.agent_tokens import AgentTokens
from farm.api.agents import agent_route
from farm.api.errors import problems
from farm.api.link_deps import LinkDeps, LinkRules
from farm.api.metrics import ConnectedAgents
from farm.api.polling import LongPolls, poll_routes
from farm.api.request_state import PRINCIPAL, Principal
from farm.api.routes import add_routes
from farm.api.serving import ApiRunner
from farm.core.admission import Bounds
from farm.core.job_states import JobState
from farm.core.model import ClientId, Namespace
from farm.manager.admission import Registrations
from farm.manager.agent_news import AgentNews
from farm.manager.commands import command
from farm.manager.disconnecting import Disconnects
from farm.protocol import messages as wire
from farm.stores.redis import RedisRegistry
from tests.jobs.farm import WINDOW_S, Farm, farm_on, until
from tests.patience import PATIENCE_S
from tests.stores.conftest import new_redis_registry, redis_url

__all__ = ["new_redis_registry", "redis_url"]

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


_WAYS: list[Dial] = [websocket]


@pytest.fixture(autouse=True, params=[websocket, longpoll], ids=["websocket", "longpoll"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds for every transport."""
    _WAYS[:] = [request.param]
    yield
    _WAYS[:] = [websocket]


@asynccontextmanager
async def dialling(url: str, secret: str = "good") -> AsyncIterator[Dialled]:
    headers = {"Authorization": f"Bearer {secret}"}
    async with aiohttp.ClientSession(headers=headers) as session, asyncio.TaskGroup() as group:
        agent = Dialled(FarmLink(session, url, dials=_WAYS))
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


async def test_an_agent_is_let_in_and_told_what_was_granted(served: Served, agent: Dialled) -> None:
    welcome = await agent.greeted()
    assert welcome.epoch_number == 1
    assert welcome.capacity == wire.Capacity(max_concurrency=1, max_windows=2)
    assert (welcome.heartbeat_interval_s, welcome.window_s) == (2.5, WINDOW_S)
    assert served.tokens.owns("token-1", A)
    assert not served.tokens.owns("token-2", A)


async def test_a_wrong_token_is_told_so_and_does_not_dial_again(served: Served) -> None:
    with pytest.raises(ExceptionGroup) as refused:
        async with dialling(served.url, "bad"):
            await asyncio.Event().wait()
    assert refused.value.subgroup(LinkRefused) is not None


async def test_a_second_agent_of_the_same_name_is_refused_and_the_first_goes_on(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    async with dialling(served.url) as second:
        await until(lambda: second.count(LinkUp))
        await second.hello(instance="another")
        await until(lambda: second.heard(wire.Refused))
        assert second.heard(wire.Refused)[0].reason == "client_id_in_use"
        assert second.heard(wire.Refused)[0].retry
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    assert agent.heard(wire.Ping)[-1].nonce == "n"


async def test_a_protocol_that_is_not_spoken_is_refused_for_good(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(protocol=99)
    await until(lambda: agent.heard(wire.Refused))
    assert not agent.heard(wire.Refused)[0].retry


async def test_an_agent_gets_no_work_of_a_namespace_its_token_is_not_for(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(namespaces=("default", "other"))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("namespace", False)


async def test_an_agent_that_takes_no_job_at_a_time_is_refused_by_name(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(capacity=wire.Capacity(max_concurrency=0))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("capacity", False)
    assert "max_concurrency is 0" in refused.detail
    assert await client(served) is None


async def test_the_acknowledgement_precedes_any_task_and_echoes_the_stored_capacity(
    served: Served, agent: Dialled
) -> None:
    await served.farm.waits(await served.farm.submit())
    await agent.greeted()
    await until(lambda: agent.heard(wire.Command))
    first = next(event.message for event in agent.told if isinstance(event, Heard))
    assert isinstance(first, wire.Welcome)
    assert first.capacity == convert.capacity((await client(served)).capacity)


ENROLLED = Principal(
    token_id="token-1",
    scope="agent",
    namespace=Namespace("shop"),
    bounds=Bounds(
        namespaces=frozenset({Namespace("shop"), Namespace("default")}),
        nodes=frozenset({"rack-1"}),
        metadata={"region": ["eu"]},
    ),
)


@pytest.mark.parametrize(
    ("claimed", "reason"),
    [
        ({"namespaces": ("shop", "default", "more")}, "namespace"),
        ({"node": "rack-2"}, "node"),
        ({"metadata": {"region": "us"}}, "metadata"),
    ],
)
async def test_an_agent_may_be_all_that_its_token_says_and_no_more(
    tmp_path: Path, claimed: dict[str, Any], reason: str
) -> None:
    async with serving(tmp_path, bearer=ENROLLED) as served:
        within: dict[str, Any] = {
            "namespaces": ("shop", "default"),
            "node": "rack-1",
            "metadata": {"region": "eu", "records": True},
        }
        async with dialling(served.url) as agent:
            await until(lambda: agent.count(LinkUp))
            await agent.hello(**(within | claimed))
            await until(lambda: agent.heard(wire.Refused))
            assert agent.heard(wire.Refused)[0].reason == reason
            assert await client(served) is None
        async with dialling(served.url) as agent:
            await agent.greeted(**within)
            assert (await client(served)).namespaces == ("shop", "default")
            assert served.registrations.connected() == {"shop": 1, "default": 1}


async def test_who_is_connected_is_a_gauge_by_namespace(served: Served, agent: Dialled) -> None:
    metrics = CollectorRegistry()
    metrics.register(ConnectedAgents(served.registrations.connected))

    def shown() -> str:
        return generate_latest(metrics).decode()

    await agent.greeted()
    assert 'farm_agents_connected{namespace="default"} 1.0' in shown()
    await agent.link.send(wire.Bye())
    await until(lambda: "farm_agents_connected{" not in shown())


@pytest.mark.parametrize(
    ("metadata", "detail"),
    [
        ('{"load": [1, NaN]}', "metadata.load[1] is nan"),
        ('{"a": {"b": -Infinity}}', "metadata.a.b is -inf"),
        ('{"a": 1e999}', "metadata.a is inf"),
    ],
)
async def test_metadata_that_is_no_json_is_refused_for_good_and_its_place_named(
    served: Served, agent: Dialled, metadata: str, detail: str
) -> None:
    await until(lambda: agent.count(LinkUp))
    hello = f'"op":"hello","client_id":"a","instance":"i","epoch":"e","metadata":{metadata}'
    await agent.raw(f"{{{hello}}}")
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("metadata", False)
    assert detail in refused.detail
    assert await client(served) is None
    assert not agent.heard(wire.Welcome)


@pytest.mark.parametrize(
    "frame",
    ["", "{", "null", "[]", '{"op": "dance"}', '{"op": "report"}', '{"op": "heartbeat"}', "\u0000"],
)
async def test_frames_that_mean_nothing_are_passed_over(
    served: Served, agent: Dialled, frame: str
) -> None:
    await agent.greeted()
    await agent.raw(frame)
    connection: Any = agent.link._connection
    if hasattr(connection, "_socket"):
        await connection._socket.send_bytes(b"\x00\xff")
    await agent.raw('{"op":"heartbeat","epoch_number":1,"nonce":"n","new":[1]}')
    await until(lambda: agent.heard(wire.Ping))
    assert agent.count(LinkDown) == 0


async def test_a_frame_that_is_too_large_ends_the_link_and_nothing_else(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await agent.link.send(wire.Error(detail="x" * (MAX_FRAME + 1)))
    await until(lambda: agent.count(LinkDown))
    assert (await agent.greeted()).epoch_number == 1


async def test_before_its_hello_an_agent_is_not_listened_to(served: Served, agent: Dialled) -> None:
    await until(lambda: agent.count(LinkUp))
    with capture_logs() as logs:
        await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
        await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Ping) == []
    (broken,) = [line for line in logs if line["event"] == "link.broken"]
    assert "client_id" not in broken


async def test_one_link_is_for_one_agent(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    await agent.hello(client_id="b")
    await until(lambda: agent.count(LinkDown))
    snapshot = await served.farm.registry.snapshot(now=served.farm.now)
    assert [c.client_id for c in snapshot.clients] == ["a"]


async def test_a_silent_agent_is_not_heard_again_before_it_says_hello(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.farm.passes(WINDOW_S * 2.25 + 0.1)
    await served.farm.dispatcher.agents.sweep_gone()
    assert await client(served) is None
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="late"))
    await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Ping) == []
    assert (await agent.greeted()).epoch_number == 2


async def test_a_link_that_closes_is_noticed_at_once_and_the_agent_keeps_its_epoch(
    served: Served, agent: Dialled
) -> None:
    first = await agent.greeted()
    await agent.hang_up()
    async with asyncio.timeout(PATIENCE_S):
        while (await client(served)).link is not None:
            await asyncio.sleep(0.005)
    assert (await agent.greeted()).epoch_number == first.epoch_number
    assert (await client(served)).link is not None


async def test_an_agent_that_says_bye_is_forgotten(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    await agent.link.send(wire.Bye())
    async with asyncio.timeout(PATIENCE_S):
        while await client(served) is not None:
            await asyncio.sleep(0.005)


def news(served: Served) -> list[tuple[str, Any]]:
    """What the agent's namespace was told, and the part of it that says why."""
    found = served.farm.events.read(BEARER.namespace, served.before, limit=100)
    assert found is not None
    assert all(event.data["client_id"] == A for event in found.events)
    why = ("reason", "draining")
    return [
        (event.kind, next((event.data[key] for key in why if key in event.data), None))
        for event in found.events
    ]


async def test_who_follows_the_farm_is_told_that_an_agent_came_drains_and_said_goodbye(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await agent.link.send(wire.Report(epoch_number=1, number=1, draining=True))
    await agent.link.send(wire.Bye())
    await until(lambda: len(news(served)) == 3)
    assert news(served) == [
        ("agent_connected", None),
        ("agent_draining", True),
        ("agent_disconnected", "deregistered"),
    ]


async def test_that_a_link_closed_is_told_as_just_that_and_once(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.links.close_all()
    await until(lambda: len(news(served)) == 2)
    await served.farm.passes(100 * WINDOW_S)
    await served.farm.dispatcher.agents.sweep_gone()
    assert news(served) == [("agent_connected", None), ("agent_disconnected", "disconnect")]


async def test_that_an_agent_was_silent_for_too_long_is_told_as_a_timeout(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await served.farm.passes(100 * WINDOW_S)
    await served.farm.dispatcher.agents.sweep_gone()
    assert news(served) == [("agent_connected", None), ("agent_disconnected", "timeout")]


async def test_a_new_browser_on_the_same_link_is_a_new_epoch(
    served: Served, agent: Dialled
) -> None:
    assert (await agent.greeted()).epoch_number == 1
    assert (await agent.greeted(epoch="browser-2")).epoch_number == 2
    await agent.link.send(wire.Report(epoch_number=1, number=9, contexts=(_tab(),)))
    await agent.link.send(wire.Heartbeat(epoch_number=2, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    assert (await client(served)).contexts == {}


def _tab(token: wire.Token | None = None) -> wire.ContextReport:
    return wire.ContextReport(context_id="T1", window_id="W1", clean=token is None, token=token)


async def test_an_assignment_that_ended_while_the_agent_was_away_is_released(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    token = wire.Token(store_epoch=1, counter=7)
    await agent.link.send(wire.Report(epoch_number=1, number=1, contexts=(_tab(token),)))
    await until(lambda: agent.heard(wire.Command))
    order = agent.heard(wire.Command)[0]
    assert (order.context_id, order.token, order.body.kind) == ("T1", token, "release")


async def test_a_release_is_told_once_however_often_its_token_is_still_reported(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    for number in (1, 2, 3):
        old = wire.Token(store_epoch=1, counter=7 if number < 3 else 8)
        await agent.link.send(wire.Report(epoch_number=1, number=number, contexts=(_tab(old),)))
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    tokens = [order.token for order in agent.heard(wire.Command)]
    assert [token.counter for token in tokens if token is not None] == [7, 8]


async def test_a_draining_agent_is_given_nothing(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    for number, because in enumerate(("", "low_disk: 9 bytes are free"), start=1):
        report = wire.Report(epoch_number=1, number=number, draining=True, draining_because=because)
        await agent.link.send(report)
        async with asyncio.timeout(PATIENCE_S):
            while (known := await client(served)).draining_because != because or not known.draining:
                await asyncio.sleep(0.005)
    assert await served.farm.waits(await served.farm.submit()) == "draining"


async def test_an_agent_that_announces_no_slots_is_refused_by_name_and_keeps_what_it_had(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted(capacity=wire.Capacity(max_concurrency=2, max_windows=2))
    await agent.link.send(wire.CapacityAnnounced(max_concurrency=0))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("capacity", True)
    assert (await client(served)).capacity.max_concurrency == 2


async def test_a_job_that_waits_for_a_slot_begins_once_one_is_announced(
    served: Served, agent: Dialled
) -> None:
    welcome = await agent.greeted(capacity=wire.Capacity(max_windows=2))
    assert welcome.capacity.max_concurrency is None
    job_id = await served.farm.submit()
    assert await served.farm.waits(job_id) == "capacity_unannounced"
    await agent.link.send(wire.CapacityAnnounced(max_concurrency=2))
    await until(lambda: agent.heard(wire.Command))
    assert (await client(served)).capacity.max_concurrency == 2


async def test_a_job_goes_over_the_wire_and_its_result_is_confirmed(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await _run(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    attempt_id = run.body.plan.attempt_id
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    events = wire.Events(
        command_id=run.command_id, attempt_id=attempt_id, token=run.token, entries=(entry,)
    )
    await agent.link.send(events)
    await until(lambda: agent.heard(wire.Stored))
    assert agent.heard(wire.Stored)[0] == wire.Stored(command_id=run.command_id, seq=1)
    await agent.link.send(_succeeded(run, seq=1))
    await until(lambda: agent.heard(wire.Stored)[-1].done)
    assert (await served.farm.job(job_id)).state is JobState.SUCCEEDED
    await agent.link.send(_succeeded(run, seq=1))
    await until(lambda: agent.heard(wire.Stored)[-1].refused)
    assert agent.heard(wire.Stored)[-1].done


@pytest.mark.parametrize("ended", [False, True])
async def test_an_agent_that_tells_of_a_run_nobody_looks_after_is_to_say_anew_what_it_runs(
    served: Served, agent: Dialled, ended: bool
) -> None:
    await agent.greeted()
    job_id, run = await _run(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    live = served.farm.live.of_job(job_id)
    assert live is not None
    live.move()
    await until(lambda: served.farm.live.of_job(job_id) is None)
    attempt_id = run.body.plan.attempt_id
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    events = wire.Events(
        command_id=run.command_id, attempt_id=attempt_id, token=run.token, entries=(entry,)
    )
    await agent.link.send(_succeeded(run, seq=0) if ended else events)
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="1"))
    await until(lambda: agent.count(LinkDown) or agent.heard(wire.Ping))
    assert (agent.heard(wire.Ping), agent.heard(wire.Stored)) == ([], [])


async def _run(served: Served, agent: Dialled) -> tuple[str, wire.Command]:
    job_id = await served.farm.submit()
    await until(lambda: agent.heard(wire.Command))
    order = agent.heard(wire.Command)[0]
    assert order.body.kind == "open_window"
    window = wire.WindowReport(window_id="W1", profile=order.body.profile)
    await agent.link.send(
        wire.Report(epoch_number=1, number=1, windows=(window,), contexts=(_tab(),))
    )
    value = {"window_id": "W1", "context_id": "T1"}
    await agent.link.send(
        wire.Result(command_id=order.command_id, outcome="succeeded", value=value)
    )
    await until(lambda: len(agent.heard(wire.Command)) == 2)
    return job_id, agent.heard(wire.Command)[1]


def _succeeded(run: wire.Command, seq: int) -> wire.Result:
    assert isinstance(run.body, wire.RunPlan)
    return wire.Result(
        command_id=run.command_id,
        attempt_id=run.body.plan.attempt_id,
        token=run.token,
        seq=seq,
        outcome="succeeded",
    )


async def test_a_result_before_what_it_rests_on_ends_the_link_and_not_the_job(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await _run(served, agent)
    await agent.link.send(_succeeded(run, seq=3))
    await until(lambda: agent.count(LinkDown))
    assert (await served.farm.job(job_id)).state is JobState.RUNNING


async def test_what_cannot_be_stored_is_not_confirmed_and_ends_the_link(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    job_id, run = await _run(served, agent)
    assert isinstance(run.body, wire.RunPlan)
    assert run.token is not None
    served.farm.database.away = True
    entry = wire.Entry(seq=1, at=1.0, event=wire.Started(context_id="T1"))
    await agent.link.send(
        wire.Events(
            command_id=run.command_id,
            attempt_id=run.body.plan.attempt_id,
            token=run.token,
            entries=(entry,),
        )
    )
    await until(lambda: agent.count(LinkDown))
    assert agent.heard(wire.Stored) == []
    served.farm.database.away = False
    running = wire.Running(
        command_id=run.command_id,
        attempt_id=run.body.plan.attempt_id,
        context_id="T1",
        token=run.token,
        epoch="browser-1",
    )
    await agent.greeted(running=(running,))
    await agent.link.send(_succeeded(run, seq=0))
    await until(lambda: agent.heard(wire.Stored))
    await served.farm.state(job_id, "succeeded")


async def test_a_command_the_agent_cannot_read_is_refused_by_its_link(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    sent = served.farm.node.expect(A, "strange", outlives_link=False)
    link = next(iter(served.links._links))
    await link._socket.send('{"op":"command","command_id":"strange","body":{"kind":"dance"}}')
    async with asyncio.timeout(PATIENCE_S):
        answer = await sent.answer
    assert isinstance(answer, wire.Ack)
    assert answer.refused == "not_understood"
    await link._socket.send('{"op":"sing"}')
    await link._socket.send("garbage")
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))


async def test_an_agent_dials_a_farm_that_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        port = int(served.url.rsplit(":", 1)[1])
        dialled = dialling(served.url)
        agent = await dialled.__aenter__()
        await agent.greeted()
    await until(lambda: agent.count(LinkDown))
    async with serving(tmp_path, port) as served:
        assert (await agent.greeted()).epoch_number == 1
        await dialled.__aexit__(None, None, None)


async def test_an_agent_that_reads_nothing_is_cut_off(served: Served, agent: Dialled) -> None:
    await agent.greeted()
    (link,) = served.links._links
    release = command("c", wire.Release())

    async def flood() -> None:
        while True:  # no turn of the loop in which anything could be sent
            await link.send(release)

    with pytest.raises(Exception, match="stopped reading"):
        await flood()


async def test_agents_that_answer_nothing_keep_nobody_from_leaving_them(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_link, "_CLOSE_S", 0.2)
    headers = {"Authorization": "Bearer good"}
    async with aiohttp.ClientSession(headers=headers) as session:
        silent = [await session.ws_connect(f"{served.url}/v1/agent") for _ in range(3)]
        await until(lambda: len(served.links._links) == len(silent))
        async with asyncio.timeout(5):
            await served.links.close_all()
        await until(lambda: not served.links._links)


async def test_nobody_hears_of_a_store_that_fails_while_a_link_closes(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    await _run(served, agent)
    served.farm.database.away = True
    await agent.hang_up()
    await until(lambda: served.farm.database.failed)
    served.farm.database.away = False
    assert (await agent.greeted()).epoch_number == 1


@pytest.mark.parametrize(("grace_s", "kept"), [(0, False), (1000, True), (None, True)])
async def test_what_an_agent_holds_is_released_when_its_link_closes_or_kept_for_its_grace(
    tmp_path: Path, grace_s: float | None, kept: bool
) -> None:
    async with serving(tmp_path, grace_s=grace_s) as served, dialling(served.url) as agent:
        await agent.greeted()
        job_id, run = await _run(served, agent)
        await agent.hang_up()
        async with asyncio.timeout(PATIENCE_S):
            while (await client(served)).link is not None:
                await asyncio.sleep(0.005)
        entry = wire.Running(
            command_id=run.command_id,
            attempt_id=run.body.plan.attempt_id if isinstance(run.body, wire.RunPlan) else "",
            context_id="T1",
            token=run.token or wire.Token(store_epoch=0, counter=0),
            epoch="browser-1",
        )
        await agent.greeted(running=(entry,))
        window = wire.WindowReport(window_id="W1")
        report = wire.Report(
            epoch_number=1, number=1, windows=(window,), contexts=(_tab(run.token),)
        )
        await agent.link.send(report)
        await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
        await until(lambda: agent.heard(wire.Ping))
        ended = [m.body.kind for m in agent.heard(wire.Command) if m.token == run.token]
        assert ended == (["run"] if kept else ["run", "release"])
        # What was released is not taken for lost: its agent is to say what became of it.
        assert (await served.farm.job(job_id)).state is JobState.RUNNING
        await agent.link.send(_succeeded(run, seq=0))
        await served.farm.state(job_id, "succeeded")


async def test_an_agent_with_a_job_of_another_coordinator_is_refused_until_it_has_given_it_up(
    tmp_path: Path, new_redis_registry: Any
) -> None:
    registry = await new_redis_registry(1)
    entry = wire.Running(
        command_id="cmd-of-another",
        attempt_id="att-of-another",
        context_id="T1",
        token=wire.Token(store_epoch=1, counter=1),
        epoch="browser-1",
    )
    async with (
        serving(tmp_path, registry=registry, name="two") as served,
        dialling(served.url) as agent,
    ):
        await until(lambda: agent.count(LinkUp))
        await agent.hello(running=(entry,))
        await until(lambda: agent.heard(wire.Refused))
        refused = agent.heard(wire.Refused)[0]
        assert (refused.reason, refused.retry) == ("runs_elsewhere", True)
        assert await client(served) is None
        await served.farm.passes(WINDOW_S * 1.25 + 1)
        await until(lambda: agent.count(LinkUp) > agent.count(LinkDown))
        await agent.greeted(running=(entry,))
        await until(lambda: agent.heard(wire.Stored))
        over = agent.heard(wire.Stored)[0]
        assert (over.command_id, over.refused, over.done) == ("cmd-of-another", True, True)


async def test_a_session_is_for_the_token_that_has_opened_it(served: Served) -> None:
    headers = {"Authorization": "Bearer good"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{served.url}/v1/agent/poll") as opened:
            url = f"{served.url}/v1/agent/poll/{(await opened.json())['session']}"
        async with session.post(url, json={}) as answer:
            assert answer.status == 200
        served.bearer = replace(BEARER, token_id="token-2")
        for method in ("POST", "DELETE"):
            async with session.request(method, url, json={}) as answer:
                assert answer.status == 404
