"""`farm serve` three times behind a balancer that knows nothing of farms: all lands anywhere."""

import asyncio
import hashlib
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from farm.sdk import FarmClient, FarmUnreachableError
from tests.agent.chromium.conftest import serving
from tests.agent.chromium.test_files import FORM
from tests.e2e.balancer import Mode, balancing
from tests.e2e.faults.conftest import place
from tests.e2e.faults.house import House
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import happened, job, once, rested, submitted
from tests.e2e.fleet import Fleet, fleet_over_one_ledger
from tests.e2e.processes import ended, eventually, process
from tests.e2e.puppet import Puppet
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["place", "postgres", "redis_url"]

pytestmark = pytest.mark.slow
T = TypeVar("T")
Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The coordinators, and the balancer's two addresses; nothing is asked but at these."""

    fleet: Fleet
    urls: dict[Mode, str]

    def client(self, mode: Mode = "tcp") -> FarmClient:
        """A client on connections of its own, which land where they do."""
        return self.fleet.client(self.urls[mode])

    async def ask(self, what: Callable[[FarmClient], Awaitable[T]], mode: Mode = "tcp") -> T:
        """Ask on a connection of its own; again where a coordinator dies with it."""
        async with asyncio.timeout(60):
            while True:
                try:
                    async with self.client(mode) as client:
                        return await what(client)
                except FarmUnreachableError:
                    await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, postgres: Databases, redis_url: str
) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        for fleet in fleet_over_one_ledger(folder, postgres):
            urls: dict[Mode, str] = {
                "tcp": stack.enter_context(balancing(folder, "tcp", fleet.ports)),
                "http": stack.enter_context(balancing(folder, "http", fleet.ports)),
            }
            yield Behind(fleet=fleet, urls=urls)


@pytest.fixture
async def behind(running: Behind) -> Behind:
    """All of them are there, whatever the test before has done."""
    await running.fleet.whole()
    return running


def a_job(name: str, **more: object) -> dict[str, object]:
    return job(name, {"goto": "https://example.com/"}, **more)


@asynccontextmanager
async def puppets(behind: Behind, mode: Mode, *made: Puppet) -> AsyncIterator[None]:
    """Have agents come in, one after the other."""
    async with AsyncExitStack() as stack:
        for puppet in made:
            await stack.enter_async_context(puppet.at(behind.urls[mode]))
            await puppet.is_let_in()
        yield


async def cancelled(client: FarmClient, job_id: str) -> None:
    await client.cancel(job_id)


@pytest.mark.parametrize("mode", ["tcp", "http"])
async def test_agents_and_people_land_anywhere_and_nobody_notices(
    behind: Behind, mode: Mode
) -> None:
    agents = [Puppet(f"{mode}-{n}") for n in range(3)]

    async def one(number: int) -> str:
        job_id = await behind.ask(partial(submitted, body=a_job(f"{mode} {number}")), mode)
        async with behind.client(mode) as client:
            kinds = [event.type async for event in client.events(job_id)]
        assert kinds[0] == "job_accepted"
        assert "attempt_ended" in kinds
        done = await behind.ask(lambda c: c.job(job_id, wait_s=10), mode)
        assert done.state == "succeeded"
        (attempt,) = done.history
        async with behind.client(mode) as client:
            assert [item async for item in client.items(job_id)] == [{"by": attempt.agent}]
        return job_id

    async with puppets(behind, mode, *agents):
        assert len({behind.fleet.let_in(agent.client_id)[-1] for agent in agents}) > 1
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(one(number)) for number in range(9)]
    job_ids = {task.result() for task in asked}
    assert len(job_ids) == 9
    takers = {behind.fleet.said("job.accepted", job_id=job_id)[0][1] for job_id in job_ids}
    assert len(takers) > 1


async def test_a_job_that_runs_is_cancelled_by_whomever_the_wish_meets(behind: Behind) -> None:
    agent = Puppet("to-be-cancelled", automatic=False)
    async with puppets(behind, "tcp", agent):
        for _ in range(3):
            job_id = await behind.ask(partial(submitted, body=a_job("to be cancelled")))
            await agent.is_running()
            await behind.ask(partial(cancelled, job_id=job_id))
            await eventually(lambda: bool(agent.cancelled))
            await agent.stop()
            agent.cancelled.clear()
            done = await behind.ask(partial(rested, job_id=job_id))
            assert done.state == "cancelled"


async def test_an_agent_comes_back_with_the_run_of_a_job_that_was_deleted(behind: Behind) -> None:
    agent = Puppet("comes-back")
    async with puppets(behind, "tcp", agent):
        job_id = await behind.ask(partial(submitted, body=a_job("to be deleted")))
        await behind.ask(partial(rested, job_id=job_id))
    (run,) = agent.begun
    await behind.ask(lambda client: client.delete(job_id))
    agent.runs[run.command_id] = run
    async with puppets(behind, "tcp", agent):
        await eventually(lambda: not agent.runs)
    assert agent.refusals == []


@pytest.mark.browser
async def test_a_file_handed_in_anywhere_goes_into_a_page_and_what_comes_of_it_out_anywhere(
    behind: Behind, tmp_path: Path, chromium_executable: str
) -> None:
    house = House(root=tmp_path)
    try:
        async with serving() as site:
            site.pages["/form"] = FORM
            await _with_a_browser(behind, house, f"{site.url}/form")
    finally:
        house.close()


async def _with_a_browser(behind: Behind, house: House, form: str) -> None:
    direct = [house.url for house in behind.fleet.houses]
    await house.agent("real", of=behind.fleet.someone(), FARM_URL=behind.urls["tcp"])
    for number, url in enumerate(direct):
        text = f"file {number}".encode()
        async with behind.fleet.client(url) as client:
            stored = await client.put_file("b.txt", text)
        steps = (
            {"goto": form},
            {"upload": {"selector": "#f", "files": [stored.reference]}},
            {"assert": {"text": f"b.txt:{len(text)}={len(text)}"}},
            {"screenshot": "form.png"},
        )
        body = once(f"with a file {number}", *steps, record=["trace", "network"])
        job_id = await behind.ask(partial(submitted, body=body))
        done = await behind.ask(partial(rested, job_id=job_id))
        assert done.state == "succeeded", done.failure
        async with behind.client() as client:
            found = await client.artifacts(job_id)
        assert {file.recording for file in found} == {None, "trace", "network"}
        for file in found:
            for place_to_ask in (*direct, *behind.urls.values()):
                async with behind.fleet.client(place_to_ask) as client:
                    content = b"".join([part async for part in client.artifact(done.id, file.name)])
                assert hashlib.sha256(content).hexdigest() == file.sha256


async def test_the_command_line_needs_to_know_the_balancer_only(
    behind: Behind, tmp_path: Path
) -> None:
    env = {"FARM_URL": behind.urls["tcp"], "FARM_TOKEN": behind.fleet.admin_token}
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_job("by hand")))

    async def farm(*words: str) -> str:
        async with process("farm.cli", *words, cwd=tmp_path, env=env) as command:
            code, out, err = await ended(command, 60)
        assert code == 0, err
        return out

    async with puppets(behind, "tcp", Puppet("for-cli")):
        done = json.loads(await farm("jobs", "submit", str(file), "--watch", "--json"))
        assert done["state"] == "succeeded"
        assert done["id"] in await farm("jobs", "list")
        assert "for-cli" in await farm("jobs", "items", done["id"])
        assert "for-cli" in await farm("agents")


async def test_one_coordinator_after_the_other_is_killed_and_no_job_is_lost_or_done_twice(
    behind: Behind,
) -> None:
    fleet, held = behind.fleet, Puppet("held", automatic=False, slots=1)
    agents = [Puppet(f"steady-{n}") for n in range(2)]

    async def several(name: str) -> list[str]:
        bodies = [a_job(name, idempotency_key=f"{name} {n}") for n in range(4)]
        return [await behind.ask(partial(submitted, body=body)) for body in bodies]

    async def history(client: FarmClient, job_id: str) -> list[int]:
        return [event.seq async for event in client.events(job_id)]

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(puppets(behind, "tcp", held))
        long = await behind.ask(partial(submitted, body=a_job("runs through all of it")))
        await held.is_running()
        await stack.enter_async_context(puppets(behind, "tcp", *agents))
        job_ids = []
        async with asyncio.TaskGroup() as group:
            follower = group.create_task(behind.ask(partial(history, job_id=long)))
            for number in range(len(fleet.houses)):
                job_ids += await several(f"before {number}")
                fleet.kill(number)
                job_ids += await several(f"without {number}")
                await fleet.start(number)
                await eventually(lambda: all(one.connected for one in (*agents, held)), 30)
            await held.drain()  # a job may be queued yet that it would take, and not finish
            await held.finish()
        for job_id in (long, *job_ids):
            done = await behind.ask(partial(rested, job_id=job_id))
            assert done.state == "succeeded", done
        assert len((await behind.ask(partial(rested, job_id=long))).history) == 1
    assert len(set(job_ids)) == len(job_ids)
    assert len(held.begun) == 1
    assert follower.result() == list(range(1, len(follower.result()) + 1))


@pytest.mark.parametrize("mode", ["tcp", "http"])
async def test_an_agent_by_requests_alone_works_wherever_they_land_and_outlives_its_coordinator(
    behind: Behind, place: Place, tmp_path: Path, mode: Mode
) -> None:
    house, name = House(root=tmp_path), f"polls-{mode}"
    try:
        agent = await a_flow_agent(behind, house, name, mode, AGENT_TRANSPORT="longpoll")
        for number in range(3):
            body = job(f"by requests {number}", {"goto": f"{place.url}/"}, browser="none")
            job_id = await behind.ask(partial(submitted, body=body))
            done = await behind.ask(partial(rested, job_id=job_id))
            assert done.state == "succeeded", done.failure
        assert len(behind.fleet.let_in(name)) == 1
        place.hold("/held/page")
        body = job("held", {"goto": f"{place.url}/held/page"}, browser="none")
        job_id = await behind.ask(partial(submitted, body=body))
        await place.asked("GET /held/page")
        holder = behind.fleet.let_in(name)[-1]
        behind.fleet.kill(holder)
        assert await behind.fleet.is_let_in(name, 2) != holder
        place.let_go("/held/page")
        done = await behind.ask(partial(rested, job_id=job_id))
        assert (done.state, len(done.history)) == ("succeeded", 1)
        assert agent.poll() is None
    finally:
        house.close()


# Effects


async def a_flow_agent(
    behind: Behind, house: House, name: str, mode: Mode = "tcp", **more: str
) -> Process:
    """Start a real agent of flows, that knows the balancer only."""
    settings = {"FARM_URL": behind.urls[mode], "AGENT_TYPE": "console", **more}
    return await house.agent(name, of=behind.fleet.someone(), **settings)


@pytest.fixture
async def flows(behind: Behind, tmp_path: Path) -> AsyncIterator[tuple[str, Process]]:
    house, name = House(root=tmp_path), f"flows-{tmp_path.name}"
    try:
        yield name, await a_flow_agent(behind, house, name)
    finally:
        house.close()


async def killed_with_an_effect(behind: Behind, place: Place, name: str, when: str) -> str:
    """Kill who has an agent's link when the shop has the order; return the job that orders.

    That is `before` or `after` it has heard that the effect was finished.
    """
    place.hold("/order" if when == "before" else "/held/page")
    holder = await behind.fleet.is_let_in(name)
    order = {
        "method": "POST",
        "url": f"{place.url}/order",
        "headers": {"Content-Type": "application/x-www-form-urlencoded"},
        "body": "name=demo&quantity=1",
        "effect": "once",
    }
    steps = ({"http": order}, {"goto": f"{place.url}/held/page"})
    body = job("orders", *steps, browser="none", retry={"max_attempts": 3})
    job_id = await behind.ask(partial(submitted, body=body))
    if when == "before":
        await place.asked("POST /order")
    else:
        await behind.ask(lambda c: happened(c, job_id, "effect_done"))
        await place.asked("GET /held/page")
    behind.fleet.kill(holder)
    return job_id


WHEN = pytest.mark.parametrize("when", ["before", "after"])


@WHEN
async def test_an_effect_that_a_killed_coordinator_saw_begin_is_had_once(
    behind: Behind, place: Place, flows: tuple[str, Process], when: str
) -> None:
    name, _ = flows
    job_id = await killed_with_an_effect(behind, place, name, when)
    first, then = behind.fleet.let_in(name)[0], await behind.fleet.is_let_in(name, 2)
    assert then != first
    place.let_go("/order")
    place.let_go("/held/page")
    done = await behind.ask(partial(rested, job_id=job_id))
    # One that was lost before it had begun anything may be before it.
    assert (done.state, done.history[-1].state) == ("succeeded", "succeeded")
    assert [one.effect for one in done.effects if one.done_at is not None] == ["once"]
    assert (place.ordered, place.hits["POST /order"]) == (1, 1)


@WHEN
async def test_an_effect_whose_coordinator_and_agent_are_killed_is_not_had_again(
    behind: Behind, place: Place, flows: tuple[str, Process], when: str, tmp_path: Path
) -> None:
    name, agent = flows
    job_id = await killed_with_an_effect(behind, place, name, when)
    agent.kill()
    agent.wait()
    place.let_go("/order")
    (tmp_path / "other").mkdir()
    other = House(root=tmp_path / "other")
    try:
        # There is somebody who could have it again.
        await a_flow_agent(behind, other, f"{name}-other")
        done = await behind.ask(partial(rested, job_id=job_id))
    finally:
        other.close()
    assert done.state == ("uncertain" if when == "before" else "failed")
    assert [one.state for one in done.history] == ["lost"]
    assert (place.ordered, place.hits["POST /order"]) == (1, 1)
