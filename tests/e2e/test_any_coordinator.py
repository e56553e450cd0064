"""Any coordinator answers any request, and says what every other one says."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest

from farm.sdk import FarmApiError, FarmClient
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.fleet import Fleet, fleet_over_one_ledger
from tests.e2e.puppet import Puppet
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]

pytestmark = pytest.mark.slow

ITS_OWN: Mapping[str, str] = {
    "/v1/pools/misses": "what its own acquisitions have met",
    "/healthz": "whether its own process lives",
}
ITS_OWN_GAUGES = ("farm_agents_connected", "farm_live_viewers")
"""The links, and the viewers, of one coordinator."""
_SOON_S = 5.0
"""Half the time for which a token is believed."""

Names = dict[str, list[str]]


def filled_in(route: str, names: Names) -> list[str]:
    """Return the paths of a route; files are compared by those who have made some."""
    kind = route.split("/")[2] if route.startswith("/v1/") else ""
    found = [route]
    for name in re.findall(r"{(\w+)}", route):
        values = names.get(f"{kind} {name}", names.get(name, []))
        found = [path.replace(f"{{{name}}}", value) for path in found for value in values]
    return found


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory, postgres: Databases, redis_url: str
) -> Iterator[Fleet]:
    yield from fleet_over_one_ledger(tmp_path_factory.mktemp("fleet"), postgres)


def a_job(name: str, **more: object) -> dict[str, object]:
    return job(name, {"goto": "https://example.com/"}, **more)


@asynccontextmanager
async def something_of_everything(fleet: Fleet) -> AsyncIterator[Names]:
    """Jobs in every state, on an agent that one of the coordinators has linked."""
    agent = Puppet("busy", automatic=False, slots=1)
    async with agent.at(fleet.houses[0].url), fleet.client(fleet.houses[1].url) as client:
        await agent.is_let_in()
        await client.put_identity("me", {})
        await client.create_namespace("shop")
        await client.place_namespace("shop", "prefer", ["eu"])
        await client.declare_deployment("v1", ["default", "nowhere"])
        done = await submitted(client, a_job("done"))
        await agent.is_running()
        await agent.finish()
        ended = await rested(client, done)
        runs = await submitted(client, a_job("runs"))
        await agent.is_running()
        ids = [await submitted(client, a_job(f"waits {n}")) for n in range(2)]
        ids.append(await submitted(client, a_job("nowhere", queue="nowhere")))
        requires = {"metadata": {"region": "eu"}}
        ids.append(await submitted(client, a_job("elsewhere", requires=requires)))
        ids.append(paused := await submitted(client, a_job("paused", queue="nowhere")))
        await client.pause(paused)
        try:
            yield {
                "job_id": [done, runs, *ids],
                "command_id": [ended.history[0].command_id],
                "identities name": ["me"],
                "deployments name": ["v1"],
            }
        finally:
            for job_id in ids:
                await client.cancel(job_id)
            await agent.finish()
            await rested(client, runs)
            await client.withdraw_deployment("v1")


Ask = Callable[[aiohttp.ClientResponse], Awaitable[object]]


async def alike(fleet: Fleet, path: str, ask: Ask) -> None:
    """Ask each until all say the same; what changes with time is the same soon."""
    answers: list[object] = []
    async with asking(fleet) as http:
        until = asyncio.get_running_loop().time() + 10
        while not answers or any(one != answers[0] for one in answers):
            if asyncio.get_running_loop().time() > until:
                assert answers == answers[:1] * len(answers), path
            answers = []
            for house in fleet.houses:
                async with http.get(house.url + path) as answer:
                    assert answer.status == 200, (path, await answer.text())
                    answers.append(await ask(answer))


def asking(fleet: Fleet) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {fleet.admin_token}"})


async def text(answer: aiohttp.ClientResponse) -> object:
    return re.sub(r'"(age_s|failed_since)":[^,}]+', "", await answer.text())


async def readiness(answer: aiohttp.ClientResponse) -> object:
    return (await answer.json())["ready"]


async def gauges(answer: aiohttp.ClientResponse) -> object:
    lines = (await answer.text()).splitlines()
    named = (re.match(r"# TYPE (\w+) gauge$", line) for line in lines)
    names = {one[1] for one in named if one and not one[1].endswith("_created")}
    shown = [one for one in lines if re.split(r"[ {]", one)[0] in names - set(ITS_OWN_GAUGES)]
    assert 'farm_jobs_unserved{verdict="pollers_at_capacity"} 2.0' in shown
    return shown


async def readable(fleet: Fleet) -> list[str]:
    """Every route that a person can read."""
    async with asking(fleet) as http, http.get(f"{fleet.houses[0].url}/openapi.json") as answer:
        routes = (await answer.json())["paths"]
    return [
        route
        for route, methods in routes.items()
        if "get" in methods and methods["get"]["security"] in ([{"admin": []}], [])
    ]


async def test_every_coordinator_says_the_same(fleet: Fleet) -> None:
    routes = await readable(fleet)
    assert set(ITS_OWN) < set(routes)
    asks: dict[str, Ask] = {"/metrics": gauges, "/readyz": readiness}
    async with something_of_everything(fleet) as names:
        for route in routes:
            for path in () if route in ITS_OWN else filled_in(route, names):
                query = "?follow=false" if route.endswith("/events") else ""
                await alike(fleet, path + query, asks.get(route, text))


async def test_every_coordinator_knows_what_a_job_does_and_why_another_waits(fleet: Fleet) -> None:
    async with something_of_everything(fleet) as names:
        _, runs, full, _, nowhere, elsewhere, paused = names["job_id"]
        for house in fleet.houses:
            async with fleet.client(house.url) as client:
                progress = (await client.job(runs)).progress
                assert progress is not None
                assert (progress.verb, progress.step_index, progress.steps) == ("goto", 0, 1)
                (shown,) = [w for w in await client.workers() if w.assignment is not None]
                assert shown.assignment is not None
                assert shown.assignment.progress == progress
                for job_id, reason in (
                    (full, "at_capacity"),
                    (nowhere, "other_queue"),
                    (elsewhere, "requirements_not_met"),
                ):
                    await waits_for(client, job_id, reason)
                assert (await client.job(paused)).waiting is None
                assert (await client.why(full)).position == 1


async def waits_for(client: FarmClient, job_id: str, reason: str) -> None:
    """A coordinator looks at what another has accepted as soon as it hears of it."""
    async with asyncio.timeout(PATIENCE_S):
        while (waiting := (await client.job(job_id)).waiting) is None:
            await asyncio.sleep(0.05)
    assert waiting.reason == reason


async def test_a_coordinator_is_ready_when_an_agent_of_another_can_open_a_page(
    fleet: Fleet,
) -> None:
    agent = Puppet("ready")
    async with agent.at(fleet.houses[0].url), fleet.client(fleet.houses[1].url) as client:
        await agent.is_let_in()
        async with asyncio.timeout(PATIENCE_S):
            while not (await client.ready()).ready:
                await asyncio.sleep(0.1)


async def test_a_token_that_one_has_revoked_opens_nothing_at_another(fleet: Fleet) -> None:
    one, two, _ = (house.url for house in fleet.houses)
    async with fleet.client(one) as admin:
        token = await admin.create_token("admin", "to be revoked")
        async with FarmClient(two, token.token) as client:
            await client.jobs()
            await admin.revoke_token(token.id)
            async with asyncio.timeout(_SOON_S):
                while await opens(client):
                    pass


async def opens(client: FarmClient) -> bool:
    with contextlib.suppress(FarmApiError):
        await client.jobs()
        return True
    return False


async def test_who_follows_what_happens_goes_on_at_another_without_a_gap(fleet: Fleet) -> None:
    one, two, _ = (house.url for house in fleet.houses)
    async with asking(fleet) as http:
        async with http.get(f"{one}/v1/events") as stream:
            async with fleet.client(two) as client:
                await client.create_namespace("news")
                await client.place_namespace("default", "prefer", ["eu"])
                await client.place_namespace("default", "unplaced")
            seen = await next_of(stream, "placement_changed")
        async with http.get(f"{two}/v1/events", headers={"Last-Event-ID": seen}) as stream:
            assert int(await next_of(stream, "placement_changed")) > int(seen)


async def next_of(stream: aiohttp.ClientResponse, kind: str) -> str:
    """Read on to an event; there is no gap before it. Return its number."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            block = (await stream.content.readuntil(b"\n\n")).decode()
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            assert fields.get("event") != "gap"
            if fields.get("event") == kind:
                return fields["id"]
