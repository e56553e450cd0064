"""`farm pools` and `farm jobs why`, for people."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from tests.api.stack import AGENT, Stack, running
from tests.api.test_pool import connect
from tests.api.test_routing import waits
from tests.cli.test_jobs_commands import farm


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


async def test_why_says_place_verdict_remedy_and_each_agents_reason(stack: Stack) -> None:
    await connect(stack)
    await stack.registry.set_draining(AGENT)
    first, second = await stack.submit(), await stack.submit()
    await waits(stack, first)
    result = await farm(stack, "jobs", "why", second)
    assert result.exit_code == ExitCode.SUCCEEDED, result.stderr
    lines = dict(line.split(":", 1) for line in result.stdout.splitlines() if ": " in line)
    assert lines["position"].strip() == "2"
    assert lines["verdict"].strip() == "pollers_draining"
    assert lines["remedy"].strip().startswith("Every agent that would do is draining")
    assert "begins" not in lines
    assert [line.split(maxsplit=2) for line in result.stdout.splitlines()[-1:]] == [
        [AGENT, "draining", "it is draining"]
    ]


async def test_pools_are_a_table_and_so_is_what_nobody_can_take(stack: Stack) -> None:
    await connect(stack)
    job_id = await stack.submit()
    await waits(stack, job_id)
    pools = await farm(stack, "pools")
    assert pools.exit_code == ExitCode.SUCCEEDED, pools.stderr
    (row,) = [line.split() for line in pools.stdout.splitlines() if line.startswith("default")]
    assert row[:7] == ["default", "1", "0", "0/2", "2", "1", "-"]
    unserved = await farm(stack, "pools", "--unserved")
    assert job_id in unserved.stdout
    assert "no_live_pollers" in unserved.stdout


async def test_of_a_job_that_there_is_not_here_nothing_is_said(stack: Stack) -> None:
    result = await farm(stack, "jobs", "why", "job_of_nobody")
    assert result.exit_code == ExitCode.FAILED
    assert result.stdout == ""
