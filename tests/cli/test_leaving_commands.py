"""`farm drain`, `farm deployments` and `farm events`, against the API over real stores."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from farm.clock import system_clock
from farm.core.model import ClientId
from tests.api.stack import DEFAULT, Stack, running
from tests.api.test_leaving import connected
from tests.cli.test_jobs_commands import farm
from tests.patience import PATIENCE_S


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


async def test_one_agent_or_those_of_a_deployment_are_drained(stack: Stack) -> None:
    for name, deployment in (("a", "v1"), ("b", "v1"), ("c", "v2")):
        await connected(stack, name, deployment=deployment)
    ended = await farm(stack, "drain", "c")
    assert (ended.exit_code, "draining" in ended.stdout) == (ExitCode.SUCCEEDED, True)
    ended = await farm(stack, "drain", "--deployment", "v1", "--deadline", "5", "--json")
    assert json.loads(ended.stdout) == [
        {"client_id": "a", "outcome": "draining"},
        {"client_id": "b", "outcome": "draining"},
    ]
    await connected(stack, "d", deployment="v3", task_queue="fast", node="rack-2")
    (head, line) = (await farm(stack, "agents", "--deployment", "v3")).stdout.splitlines()
    assert dict(zip(head.split(), line.split(), strict=False)).items() >= {
        ("QUEUE", "fast"),
        ("NODE", "rack-2"),
    }
    shown = await farm(stack, "workers")
    assert ["d", "fast", "rack-2"] in [row.split()[3:6] for row in shown.stdout.splitlines()]
    (worker,) = [
        one
        for one in json.loads((await farm(stack, "workers", "--json")).stdout)
        if one["client_id"] == "d"
    ]
    assert (worker["task_queue"], worker["node"]) == ("fast", "rack-2")
    shown = await farm(stack, "agents", "--deployment", "v1")
    assert "asked by admin" in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["a", "b"]


async def test_that_no_agent_is_like_what_was_asked_for_is_said(stack: Stack) -> None:
    await connected(stack, "a", deployment="v1")
    ended = await farm(stack, "drain", "--deployment", "v11", "--wait")
    assert ended.exit_code == ExitCode.SUCCEEDED
    assert "No agent is like that" in ended.stderr


@pytest.mark.parametrize("arguments", [(), ("a", "--all"), ("a", "--node", "x")])
async def test_which_agents_are_to_leave_is_said_one_way(
    stack: Stack, arguments: tuple[str, ...]
) -> None:
    await connected(stack)
    ended = await farm(stack, "drain", *arguments)
    assert (ended.exit_code, ended.stdout) == (ExitCode.USAGE, "")


async def test_to_wait_is_to_return_when_they_have_left(stack: Stack) -> None:
    await connected(stack)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        draining = group.create_task(farm(stack, "drain", "--all", "--wait"))
        while not (await stack.registry.snapshot(now=system_clock())).clients[0].draining:
            await asyncio.sleep(0.02)
        await stack.leaving.remove(None, ClientId("a"), by="it left")
    assert draining.result().exit_code == ExitCode.SUCCEEDED
    ended = await farm(stack, "drain", "--all", "--wait")
    assert ended.exit_code == ExitCode.SUCCEEDED


async def test_deployments_are_declared_listed_and_withdrawn(stack: Stack) -> None:
    await connected(stack, deployment="v1")
    made = await farm(stack, "deployments", "declare", "v1", "--queue", "fast", "--queue", "slow")
    assert made.exit_code == ExitCode.SUCCEEDED, made.stderr
    listed = await farm(stack, "deployments", "list", "--json")
    (one,) = json.loads(listed.stdout)
    assert (one["name"], one["queues"], one["agents"]) == ("v1", ["fast", "slow"], 1)
    assert (await farm(stack, "deployments", "withdraw", "v1")).exit_code == ExitCode.SUCCEEDED
    assert (await farm(stack, "deployments", "withdraw", "v1")).exit_code == ExitCode.FAILED


async def test_events_are_written_as_they_are_or_as_lines(stack: Stack) -> None:
    await connected(stack)
    before = stack.events.last()
    stack.events.publish("agent_connected", DEFAULT, {"client_id": "a"})
    said = await farm(stack, "events", "--no-follow", "--after", str(before))
    assert said.exit_code == ExitCode.SUCCEEDED, said.stderr
    assert "agent_connected  client_id=a" in said.stdout
    lines = (await farm(stack, "events", "--no-follow", "--json")).stdout.splitlines()
    assert [agent["client_id"] for agent in json.loads(lines[0])["agents"]] == ["a"]
    missing = await farm(stack, "events", "--no-follow", "--after", "1")
    assert "some events are missing" in missing.stdout
