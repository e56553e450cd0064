"""Jobs that name one identity: who has it, who waits for it, and what their windows are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from farm.core.model import ClientId
from farm.errors import InvalidInputError
from farm.protocol import messages as wire
from farm.protocol.identities import IdentityPut
from farm.protocol.plan import Borrows, BrowserOptions
from tests.jobs.farm import NS, Agent, Farm, farm_on, living, until

OPTIONS = {"locale": "nb-NO", "timezone": "Europe/Oslo"}


@asynccontextmanager
async def with_agents(directory: Path, *names: str) -> AsyncIterator[tuple[Farm, list[Agent]]]:
    agents = [Agent(client_id=name) for name in names]
    async with farm_on(directory) as farm, living(*agents):
        await farm.identities.put(NS, "shopper", IdentityPut.model_validate({"options": OPTIONS}))
        for agent in agents:
            await agent.dial(farm)
        yield farm, agents


def use(mode: str = "exclusive", **more: Any) -> dict[str, Any]:
    return {"identity": {"name": "shopper", "mode": mode, **more}}


async def test_a_second_exclusive_use_waits_for_the_first_wherever_it_is(tmp_path: Path) -> None:
    async with with_agents(tmp_path, "a", "b") as (farm, agents):
        first, second = await farm.submit(**use()), await farm.submit(**use(), name="second")
        await farm.state(first, "running")
        assert await farm.waits(second) == "identity_in_use"
        other = await farm.submit(name="nobody's")
        await farm.state(other, "running")
        opened = [agent for agent in agents if agent.opened]
        assert len(opened) == 2
        for agent in agents:
            await agent.running()
            await agent.end()
        await farm.state(second, "running")
        assert await farm.identities.store.users(NS, "shopper") != []


async def test_an_agent_that_is_lost_gives_the_identity_back(tmp_path: Path) -> None:
    async with with_agents(tmp_path, "a") as (farm, (agent,)):
        first, second = await farm.submit(**use()), await farm.submit(**use())
        await agent.running()
        assert await farm.waits(second) == "identity_in_use"
        await farm.dispatcher.agents.is_gone(ClientId(agent.client_id), "gone")
        await farm.state(first, "queued")
        assert await farm.identities.store.users(NS, "shopper") == []


async def test_reading_ones_share_and_an_older_exclusive_one_goes_before_them(
    tmp_path: Path,
) -> None:
    async with with_agents(tmp_path, "a", "b", "c") as (farm, agents):
        reading = [await farm.submit(**use("read_only"), name=f"r{n}") for n in range(2)]
        for job_id in reading:
            await farm.state(job_id, "running")
        exclusive = await farm.submit(**use())
        assert await farm.waits(exclusive) == "identity_in_use"
        late = await farm.submit(**use("read_only"), name="late")
        assert await farm.waits(late) == "identity_in_use"
        clone = await farm.submit(**use("clone"), name="clone")
        await farm.state(clone, "running")
        for agent in agents:
            await agent.running()
            await agent.end()
        await farm.state(exclusive, "running")


async def test_the_window_is_the_identitys_and_the_plan_says_what_to_borrow(
    tmp_path: Path,
) -> None:
    async with with_agents(tmp_path, "a") as (farm, (agent,)):
        await farm.submit(**use(), browser={"locale": "en-GB"})
        command = await agent.running()
        assert isinstance(command.body, wire.RunPlan)
        assert command.body.plan.borrows == Borrows(identity="shopper", save="on_success")
        (opening,) = [
            message.body
            for message in agent.heard
            if isinstance(message, wire.Command) and isinstance(message.body, wire.OpenWindow)
        ]
        assert opening.options == BrowserOptions(locale="en-GB", timezone="Europe/Oslo")
        assert opening.identity is None


async def test_nothing_secret_is_in_what_is_sent_to_agents(tmp_path: Path) -> None:
    proxy = {"server": "http://p.example:1", "username": "us3r", "password": "pr0xy-pass"}
    async with with_agents(tmp_path, "a") as (farm, (agent,)):
        job_id = await farm.submit(proxy=proxy)
        command = await agent.running()
        assert isinstance(command.body, wire.RunPlan)
        assert command.body.plan.borrows == Borrows()
        for text in (str(agent.heard), str((await farm.job(job_id)).spec)):
            assert "pr0xy-pass" not in text
            assert "us3r" not in text


def _is_of(run: wire.Command, job_id: str) -> bool:
    return isinstance(run.body, wire.RunPlan) and run.body.plan.job_id == job_id


@pytest.mark.parametrize("mode", ["exclusive", "read_only", "clone"])
async def test_a_job_whose_identity_is_gone_waits_says_so_and_is_in_nobodys_way(
    tmp_path: Path, mode: str
) -> None:
    async with with_agents(tmp_path, "a") as (farm, (agent,)):
        blocker = await farm.submit(name="blocker")
        await agent.running()
        waiting = await farm.submit(**use(mode))
        await farm.identities.delete(NS, "shopper")
        await agent.end()
        await farm.state(blocker, "succeeded")
        await farm.comes_to_wait(waiting, "identity_missing")
        behind = await farm.submit(name="behind")
        await farm.state(behind, "running")
        await until(lambda: agent.runs and all(_is_of(run, behind) for run in agent.runs.values()))
        await agent.end()
        await farm.state(behind, "succeeded")
        await farm.identities.put(NS, "shopper", IdentityPut())
        farm.dispatcher.wake()
        await farm.state(waiting, "running")


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"identity": {"name": "shoper"}}, "/identity/name", "there is no identity"),
        ({"identity": {"name": "shopper", "mode": "cloned"}}, "/identity/mode", "should be"),
        (
            {"identity": {"name": "shopper", "mode": "clone", "save": "always"}},
            "/identity",
            "only an exclusive use is saved",
        ),
        (
            {"identity": {"name": "shopper"}, "browser": {"context": "reuse"}},
            "/identity",
            "not with browser.context: reuse",
        ),
        (
            {"proxy": {"server": "http://p:1"}, "browser": {"context": "reset"}},
            "/proxy",
            "not with browser.context: reset",
        ),
        ({"identity": ["shopper"]}, "/identity", "should be a mapping"),
        ({"identity": {"name": "a b"}}, "/identity/name", "letters, digits"),
        ({"proxy": {"server": "p:1"}}, "/proxy/server", "http://"),
        ({"proxy": {"server": "http://p:1", "pasword": "x"}}, "/proxy/pasword", "unknown key"),
        (
            {
                "params": {"pw": "pr0xy-pass"},
                "proxy": {"server": "http://p:1", "username": "u", "password": "${params.pw}"},
            },
            "/proxy",
            "from no param",
        ),
    ],
)
async def test_what_is_wrong_is_said_on_submit_and_quotes_no_secret(
    tmp_path: Path, changes: dict[str, Any], pointer: str, words: str
) -> None:
    async with with_agents(tmp_path) as (farm, _):
        with pytest.raises(InvalidInputError) as caught:
            await farm.submit(**changes)
        problems = caught.value.context["problems"]
        assert isinstance(problems, list | tuple)
        (found,) = [p for p in problems if p["pointer"] == pointer]
        assert words in found["detail"]
        assert "pr0xy-pass" not in str(problems)
