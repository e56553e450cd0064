"""`farm serve` twice over one Redis, and what is left when one of them, or Redis, is killed."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from farm.clock import steady_clock
from farm.manager import WorkerContextManager
from farm.manager.delivery import AppNode
from farm.manager.relay import Relay
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.sdk import FarmClient
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisClock, RedisCommandLog, RedisRegistry, RedisRoutes, connect
from tests.e2e.faults.conftest import place
from tests.e2e.faults.house import House
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.processes import eventually
from tests.e2e.puppet import Puppet, token_of
from tests.patience import PATIENCE_S
from tests.stores import redis_server
from tests.stores.conftest import redis_url

__all__ = ["place", "redis_url"]

WINDOW_S = 3.0


class Server:
    """A Redis that can be killed and started again, having forgotten everything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()

    def start(self) -> None:
        running = redis_server.process(self._folder)
        self.url, self._process = self._open.enter_context(running)

    def kill(self) -> None:
        self._open.close()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two coordinators, each with a ledger of its own, and what they share."""

    fleet: Fleet
    server: Server


@contextmanager
def _pair(folder: Path, **settings: str) -> Iterator[Pair]:
    server = Server(folder)
    server.start()
    try:
        shared = {"FARM_REDIS__URL": server.url, "FARM_EGRESS_ALLOW": "127.0.0.1", **settings}
        for fleet in fleet_of(folder, shared, ("one", "two")):
            yield Pair(fleet=fleet, server=server)
    finally:
        server.kill()


@pytest.fixture(scope="module")
def running_pair(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Pair]:
    with _pair(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture(scope="module")
def running_patient(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Pair]:
    with _pair(tmp_path_factory.mktemp("patient"), FARM_LINK__WINDOW_S="30") as pair:
        yield pair


@pytest.fixture
async def pair(running_pair: Pair) -> Pair:
    """Both are there, whatever the test before has done."""
    await running_pair.fleet.whole()
    return running_pair


@pytest.fixture
async def patient(running_patient: Pair) -> Pair:
    """Two whose agents wait for long, so that nothing is lost meanwhile."""
    await running_patient.fleet.whole()
    return running_patient


@asynccontextmanager
async def library(url: str) -> AsyncIterator[WorkerContextManager]:
    """A manager of an application's own, over the Redis that the farms share."""
    redis = connect(url)
    registry = RedisRegistry(redis, presence_window_s=WINDOW_S)
    await registry.open(store_epoch=1)
    clock = RedisClock(redis, steady=steady_clock)
    await clock.read()
    routes = RedisRoutes(registry, coordinator=CoordinatorId("library"))
    node = AppNode(commands=RedisCommandLog(registry), relay=Relay(routes), clock=clock)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(node.run())
        yield WorkerContextManager(
            context_registry=registry,
            connection_registry=registry,
            browser_window_registry=registry,
            app_node=node,
            clock=clock,
        )
        serving.cancel()
    await registry.close()
    await redis.aclose()


def a_job(name: str) -> dict[str, object]:
    return job(name, {"goto": "https://example.com/"})


async def agents(client: FarmClient) -> set[str]:
    return {agent.client_id for agent in await client.agents() if agent.present}


async def test_two_coordinators_lend_one_pool_and_each_runs_its_own_jobs_on_its_own_agents(
    pair: Pair,
) -> None:
    one, two = pair.fleet.houses
    a, b = Puppet("lent-a"), Puppet("lent-b")
    async with (
        a.at(one.url),
        b.at(two.url),
        one.client() as first,
        two.client() as second,
        library(pair.server.url) as manager,
    ):
        await a.is_let_in()
        await b.is_let_in()
        assert await agents(first) == await agents(second) == {"lent-a", "lent-b"}
        for client, puppet in ((first, a), (second, b)):
            done = await rested(client, await submitted(client, a_job("own")))
            assert (done.state, [t.agent for t in done.history]) == (
                "succeeded",
                [puppet.client_id],
            )
            items = [item async for item in client.items(done.id)]
            assert items == [{"by": puppet.client_id}]
        for puppet in (a, b):
            handle = await manager.acquire(
                "default", "t", affinity_client_id=puppet.client_id, auto_provision=True
            )
            assert handle is not None
            assert handle.assignment.client_id == puppet.client_id
            probed = await handle.wait(await handle.probe())
            assert isinstance(probed, wire.Result)
            plan = Plan(job_id="j", attempt_id=f"of-{puppet.client_id}", name="n", steps=())
            ran = await handle.wait(await handle.run(plan))
            assert isinstance(ran, wire.Result)
            assert (probed.outcome, ran.outcome) == ("succeeded", "succeeded")
            await handle.release()
        await eventually_empty(a, b)


async def eventually_empty(*puppets: Puppet) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while any(puppet.runs or puppet.tabs for puppet in puppets):
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_the_agents_of_a_coordinator_that_is_killed_go_to_another_and_nothing_is_given_twice(
    pair: Pair,
) -> None:
    one, two = pair.fleet.houses
    a, b = Puppet("a", automatic=False), Puppet("b", slots=1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(b.at(two.url))
        async with a.at(one.url), one.client() as first:
            await a.is_let_in()
            await b.is_let_in()
            running = await submitted(first, a_job("of the first"))
            await a.is_running()
            pair.fleet.kill(0)
        (old,) = a.begun
        await a.give_up()
        a.automatic = True
        await stack.enter_async_context(a.at(two.url))
        second = await stack.enter_async_context(two.client())
        await a.is_let_in()
        assert {refusal.reason for refusal in a.refusals} == {"runs_elsewhere"}
        await eventually_empty(a)
        jobs = [await submitted(second, a_job(f"{n}")) for n in range(6)]
        done = [await rested(second, job_id) for job_id in jobs]
        assert {ended.state for ended in done} == {"succeeded"}
        assert {attempt.agent for ended in done for attempt in ended.history} == {"a", "b"}
        tokens = [token_of(run) for run in a.begun]
        assert len({(t.store_epoch, t.counter) for t in tokens}) == len(tokens)
        assert all(
            (t.store_epoch, t.counter) > (token_of(old).store_epoch, token_of(old).counter)
            for t in tokens[1:]
        )
        await pair.fleet.start(0)
        c = Puppet("c")
        await stack.enter_async_context(c.at(one.url))
        async with one.client() as first:
            again = await rested(first, running)
        assert [(t.agent, t.state) for t in again.history] == [("a", "lost"), ("c", "succeeded")]


async def test_a_coordinator_that_is_killed_and_started_again_goes_on_with_what_runs(
    patient: Pair,
) -> None:
    one, _ = patient.fleet.houses
    a = Puppet("kept", automatic=False)
    async with a.at(one.url):
        async with one.client() as client:
            running = await submitted(client, a_job("running"))
            await a.is_running()
            patient.fleet.kill(0)
        await patient.fleet.start(0)
        await eventually(lambda: a.welcomes == 2, 30)
        await a.finish()
        async with one.client() as client:
            done = await rested(client, running)
        assert (done.state, len(done.history), len(a.begun)) == ("succeeded", 1, 1)
        await eventually_empty(a)


@pytest.mark.browser
@pytest.mark.slow
async def test_an_agent_with_a_browser_gives_up_a_killed_coordinators_job_and_works_for_the_next(
    pair: Pair, place: Place, tmp_path: Path
) -> None:
    one, two = pair.fleet.houses
    house = House(root=tmp_path)
    try:
        agent = await house.agent("lone", of=one, FARM_URL=f"{one.url},{two.url}")
        await _gives_up_and_goes_on(pair, agent, place)
    finally:
        house.close()


async def _gives_up_and_goes_on(pair: Pair, agent: "subprocess.Popen[bytes]", place: Place) -> None:
    one, two = pair.fleet.houses
    place.hold("/held/page")
    async with one.client() as first, two.client() as second:
        await submitted(first, job("held", {"goto": f"{place.url}/held/page"}))
        await place.asked("GET /held/page")
        waiting = await submitted(second, job("next", {"goto": f"{place.url}/status/200"}))
        pair.fleet.kill(0)
        await place.left("/held/page")
        done = await rested(second, waiting)
        assert (done.state, [t.agent for t in done.history]) == ("succeeded", ["lone"])
    assert place.hits["GET /held/page"] == 1
    assert agent.poll() is None


@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.slow)])
async def test_while_redis_is_away_nothing_is_lost_and_when_it_is_back_everything_goes_on(
    patient: Pair, how: str
) -> None:
    one, _ = patient.fleet.houses
    a = Puppet(f"away-{how}", automatic=False)
    async with a.at(one.url), one.client() as client:
        await a.is_let_in()
        running = await submitted(client, a_job("running"))
        await a.is_running()
        await becomes(one, 200)
        if how == "killed":
            patient.server.kill()
        else:
            patient.server.stop()
        assert "Redis" in await becomes(one, 503)
        queued = await submitted(client, a_job("queued"))
        if how == "killed":
            patient.server.start()
        else:
            patient.server.go_on()
        await a.is_running(2)
        await a.finish()
        done = [await rested(client, job_id) for job_id in (running, queued)]
        assert [(ended.state, len(ended.history)) for ended in done] == [("succeeded", 1)] * 2
        assert len(a.begun) == 2
        await eventually_empty(a)


async def becomes(house: House, status: int) -> str:
    """Wait until a farm is ready, or is not; return what it says of that."""
    headers = {"Authorization": f"Bearer {house.admin_token}"}
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(headers=headers) as http:
        while True:
            async with http.get(f"{house.url}/readyz") as answer:
                if answer.status == status:
                    return await answer.text()
            await asyncio.sleep(0.1)
