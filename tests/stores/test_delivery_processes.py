"""Commands through coordinators that are other processes, and are killed."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farm.core.commands import Answer, CommandState
from farm.errors import ClientAbsentError
from farm.protocol import messages as wire
from farm.stores.redis import RedisRegistry
from tests.patience import PATIENCE_S
from tests.stores.coordinator import ANSWERS, HANGS, SENDS
from tests.stores.coordinators import coordinators, registry
from tests.stores.pool import NS

__all__ = ["registry"]


ROOT = Path(__file__).parents[2]


YES, NO = Answer.YES, Answer.NO


@asynccontextmanager
async def process(
    url: str, registry: RedisRegistry, how: str, *, lease_s: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.coordinator"),
        *(url, registry.shard, "other", how, f"{lease_s}"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await line(running) == "ready"
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def line(running: asyncio.subprocess.Process) -> str:
    assert running.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await running.stdout.readline()).decode().strip()


async def test_a_command_goes_through_another_process_and_its_result_comes_back(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, ANSWERS, lease_s=5),
        coordinators(registry, "one") as (one,),
    ):
        sent = await one.sends()
        assert await sent.answer == wire.Result(
            command_id="c", outcome="succeeded", value={"by": "c"}
        )
        evidence = await one.evidence()
        assert evidence.state is CommandState.RESULT
        assert evidence.acknowledged_at is not None


async def test_a_coordinator_killed_in_the_middle_of_a_send_leaves_it_attempted(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with process(redis_url, registry, SENDS, lease_s=5) as other:
        assert await line(other) == "of-other"
        other.kill()
        await other.wait()
    async with coordinators(registry, "one") as (one,):
        found = await one.node.answers(NS, "of-other")
    assert (found.send_attempted, found.acknowledged, found.result_retained) == (YES, NO, NO)


async def test_one_killed_in_the_middle_of_a_send_for_another_leaves_it_attempted(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, HANGS, lease_s=1) as other,
        coordinators(registry, "one", word_within_s=1.0, lease_s=1.0) as (one,),
        asyncio.TaskGroup() as group,
    ):
        sending = group.create_task(one.sends())
        assert await line(other) == "c"
        other.kill()
        sent = await sending
        # Of what may have been sent it is not said that it was not; the wait ends all the same.
        with pytest.raises(ClientAbsentError):
            await sent.answer
        found = await one.node.answers(NS, "c")
        assert (found.send_attempted, found.result_retained) == (YES, NO)
        with pytest.raises(ClientAbsentError):
            await one.sends("next")
        assert (await one.node.answers(NS, "next")).send_attempted is NO


async def test_one_that_says_nothing_in_time_sends_nothing_when_it_comes_to_itself(
    redis_url: str, registry: RedisRegistry
) -> None:
    async with (
        process(redis_url, registry, ANSWERS, lease_s=60) as other,
        coordinators(registry, "one", word_within_s=0.3, lease_s=60) as (one,),
    ):
        other.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(ClientAbsentError, match="does not answer"):
                await one.sends("late")
            assert (await one.node.answers(NS, "late")).send_attempted is NO
        finally:
            other.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            while True:  # until it is quick enough again
                try:
                    await one.sends(f"again-{asyncio.get_running_loop().time()}")
                except ClientAbsentError:
                    continue
                break
        # The first thing that it sends its agent is not what was withdrawn.
        assert (await line(other)).startswith("again-")
        assert (await one.evidence("late")).state is CommandState.WITHDRAWN
