import asyncio
import json
from typing import Any

import aiohttp
import pytest

from farm.api import events
from tests.api.stack import Stack
from tests.patience import PATIENCE_S


async def read_all(response: aiohttp.ClientResponse) -> list[tuple[str, str | None, Any]]:
    """Return (event, id, data) of everything sent until the end."""
    told = []
    for block in (await response.text()).split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if "data" in fields:
            told.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return told


async def test_a_job_at_rest_tells_its_whole_history_and_ends(stack: Stack) -> None:
    job_id = await stack.submit()
    await stack.finish(await stack.start(job_id))
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}/events", headers=stack.as_admin()
    ) as response:
        assert response.content_type == "text/event-stream"
        told = await read_all(response)
    assert [id for _, id, _ in told[:-1]] == [str(n) for n in range(1, len(told))]
    assert told[-1][0] == "end"
    assert told[-1][2]["state"] == "succeeded"
    assert "finished" in [event for event, _, _ in told]


@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_client_goes_on_where_it_was(stack: Stack, way: str) -> None:
    job_id = await stack.submit()
    await stack.finish(await stack.start(job_id))
    query, headers = ("?after=1", {}) if way == "query" else ("", {"Last-Event-ID": "1"})
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}/events{query}", headers=stack.as_admin(**headers)
    ) as response:
        told = await read_all(response)
    assert told[0][1] == "2"


async def test_what_happens_later_is_told_then(stack: Stack) -> None:
    job_id = await stack.submit()
    async with (
        asyncio.timeout(PATIENCE_S),
        stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}/events", headers=stack.as_admin()
        ) as response,
    ):
        first = await response.content.readuntil(b"\n\n")
        assert first.startswith(b"id: 1\n")
        attempt = await stack.start(job_id)
        await response.content.readuntil(b"\n\n")
        await stack.note(attempt, 1, "notice", code="x", detail="y")
        assert b"event: notice\n" in await response.content.readuntil(b"\n\n")
        await stack.finish(attempt)
        told = await read_all(response)
    assert told[-1][0] == "end"


async def test_without_follow_only_what_is_there_is_told(stack: Stack) -> None:
    job_id = await stack.submit()
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}/events?follow=false", headers=stack.as_admin()
    ) as response:
        assert (await read_all(response))[-1][2]["state"] == "queued"


async def test_a_number_that_is_none_is_refused(stack: Stack) -> None:
    job_id = await stack.submit()
    for bad in ("x", "-1", "1.5", "²", "9" * 30):
        async with stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}/events",
            params={"after": bad},
            headers=stack.as_admin(),
        ) as response:
            assert response.status == 422, bad


async def test_a_silent_job_shows_that_the_connection_lives(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.0)
    monkeypatch.setattr(events, "SLICE_S", 0.05)
    job_id = await stack.submit()
    async with (
        asyncio.timeout(PATIENCE_S),
        stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}/events", headers=stack.as_admin()
        ) as response,
    ):
        await response.content.readuntil(b"\n\n")
        assert await response.content.readuntil(b"\n\n") == b": still here\n\n"


async def test_a_client_that_leaves_is_noticed_and_leaves_nothing_behind(stack: Stack) -> None:
    job_id = await stack.submit()
    tasks = len(asyncio.all_tasks())
    async with aiohttp.ClientSession() as leaving:
        response = await leaving.get(
            f"{stack.url}/v1/jobs/{job_id}/events", headers=stack.as_admin()
        )
        await response.content.readuntil(b"\n\n")
        assert stack.feed.watched() == 1
        response.close()
    async with asyncio.timeout(PATIENCE_S):
        while stack.feed.watched() or len(asyncio.all_tasks()) > tasks:
            await asyncio.sleep(0.02)


async def test_a_client_that_stops_waiting_is_noticed_too(stack: Stack) -> None:
    job_id = await stack.submit()
    async with aiohttp.ClientSession() as leaving:
        with pytest.raises(TimeoutError):
            await leaving.get(
                f"{stack.url}/v1/jobs/{job_id}?wait=60",
                headers=stack.as_admin(),
                timeout=aiohttp.ClientTimeout(total=0.3),
            )
    async with asyncio.timeout(PATIENCE_S):
        while stack.feed.watched():
            await asyncio.sleep(0.02)


async def test_a_farm_that_stops_ends_the_streams_without_a_last_event(stack: Stack) -> None:
    job_id = await stack.submit()
    async with (
        asyncio.timeout(PATIENCE_S),
        stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}/events", headers=stack.as_admin()
        ) as response,
    ):
        await response.content.readuntil(b"\n\n")
        stack.feed.close()
        assert await read_all(response) == []
