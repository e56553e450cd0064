"""A job that people hold, against a farm with a real agent and a real browser."""

import asyncio
import json

import pytest

from farm.protocol.resources import JobDetail
from farm.sdk import FarmApiError, FarmClient
from tests.e2e.conftest import RunningFarm
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = """
name: with a person
timeout: {job: 30s}
steps:
- goto: "data:text/html,<title>x</title><h1>page</h1>"
- human: {message: "Solve it", timeout: 1m}
- wait: 5s
- extract: {fields: {title: h1}}
"""


async def controlled(client: FarmClient, job_id: str, state: str | None) -> JobDetail:
    """Wait until somebody has control, or automation again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            job = await client.job(job_id)
            if (None if job.control is None else job.control.state) == state:
                return job
            await asyncio.sleep(0.05)


async def test_a_job_asks_for_a_person_is_handed_back_paused_resumed_and_succeeds(
    farm: RunningFarm,
) -> None:
    async with farm.client() as client:
        job_id = (await client.submit(JOB)).id
        asked = await controlled(client, job_id, "human")
        assert asked.control is not None
        assert (asked.state, asked.control.by, asked.control.asked) == ("running", "", "Solve it")
        with pytest.raises(FarmApiError, match="out of place"):
            await client.resume(job_id)
        with pytest.raises(FarmApiError, match="can't show a message"):
            await client.message(job_id, "hello")
        taken = await client.take_over(job_id, by="anna")
        assert taken.outcome == "applied"
        async with asyncio.timeout(PATIENCE_S):
            while (job := await client.job(job_id)).control is None or not job.control.by:
                await asyncio.sleep(0.02)
        assert job.control.by == "anna"
        # The next step waits, as somebody wants to pause before it has ended.
        await client.hand_back(job_id, by="anna")
        await client.pause(job_id, by="bert")
        await controlled(client, job_id, "paused")
        assert (await client.resume(job_id, by="bert")).outcome == "applied"
        job = await client.job(job_id, wait_s=30)
        assert job.state == "succeeded", job.failure
        assert [item async for item in client.items(job_id)] == [{"title": "page"}]
        history = [event async for event in client.events(job_id, follow=False)]
    moves = ("taken_over", "handed_back", "pausing", "paused", "resumed")
    said = [(e.type, e.data.get("by")) for e in history if e.type in moves]
    assert said == [
        ("taken_over", ""),
        ("taken_over", "anna"),
        ("handed_back", "anna"),
        ("pausing", "bert"),
        ("paused", "bert"),
        ("resumed", "bert"),
    ]
    wanted = [(e.data["kind"], e.data["outcome"]) for e in history if e.type == "intervention"]
    assert wanted == [
        ("resume", "out_of_place"),
        ("message", "capability_not_supported"),
        ("takeover", "applied"),
        ("hand_back", "applied"),
        ("pause", "applied"),
        ("resume", "applied"),
    ]
    assert "hello" in json.dumps([e.data for e in history if e.type == "intervention"])
