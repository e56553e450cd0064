"""`GET /v1/events`: a snapshot first, then what happens, and a gap where something is missing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from farm.api import cluster_events, pool
from farm.clock import system_clock
from farm.core.model import Namespace
from farm.errors import StoreUnavailableError
from farm.stores.ports.cluster_events import ClusterEvent, EventKind
from tests.api.stack import DEFAULT, HELD_EVENTS, Stack
from tests.patience import PATIENCE_S
from tests.stores.pool import hello

KIND = EventKind.AGENT_CONNECTED
OTHER = Namespace("other")


class Follower:
    """Somebody who follows the events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, int | None, Any]:
        """Return the name, number and data of the next one."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                block = (await self._response.content.readuntil(b"\n\n")).decode()
                if not block:
                    raise EOFError
                fields = dict(line.split(": ", 1) for line in block.splitlines() if line)
                if "event" in fields:
                    number = int(fields["id"]) if "id" in fields else None
                    return fields["event"], number, json.loads(fields["data"])


@asynccontextmanager
async def following(stack: Stack, **headers: str) -> AsyncIterator[Follower]:
    async with stack.http.get(
        f"{stack.url}/v1/events", headers=stack.as_admin(**headers)
    ) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Follower(response)


async def test_a_snapshot_comes_first_and_then_what_happens(stack: Stack) -> None:
    await stack.registry.register(
        hello(namespaces=(DEFAULT,)), epoch_name="e", highest_token=None, now=system_clock()
    )
    stack.events.publish(KIND, DEFAULT, {"client_id": "before"})
    async with following(stack) as follower:
        name, number, snapshot = await follower.next()
        assert name == "snapshot"
        assert number == snapshot["as_of"] == stack.events.last()
        assert [agent["client_id"] for agent in snapshot["agents"]] == ["a"]
        stack.events.publish(KIND, DEFAULT, {"client_id": "b"})
        name, number, event = await follower.next()
        assert (name, event["kind"]) == ("agent_connected", "agent_connected")
        assert number == event["seq"]
        assert event["seq"] > snapshot["as_of"]
        assert event["data"] == {"client_id": "b"}


async def test_while_the_registry_does_not_answer_nobody_is_told_that_it_begins(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailableError("Redis did not answer")

    monkeypatch.setattr(pool, "clients_of", away)
    async with stack.http.get(f"{stack.url}/v1/events", headers=stack.as_admin()) as response:
        assert response.status == 503
        assert (await response.json())["detail"] == "Redis did not answer"


async def test_what_happens_while_the_snapshot_is_read_is_told_after_it_and_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = pool.clients_of

    async def read_slowly(*args: Any) -> Any:
        found = await read(*args)
        stack.events.publish(KIND, DEFAULT, {"client_id": "meanwhile"})
        return found

    monkeypatch.setattr(pool, "clients_of", read_slowly)
    async with following(stack) as follower:
        _, as_of, _ = await follower.next()
        stack.events.publish(KIND, DEFAULT, {"client_id": "later"})
        told = [await follower.next() for _ in range(2)]
        assert [data["data"]["client_id"] for _, _, data in told] == ["meanwhile", "later"]
        numbers = [as_of, *(number for _, number, _ in told)]
        assert numbers == sorted({number or 0 for number in numbers})


async def test_a_namespace_follows_its_own_events_alone(stack: Stack) -> None:
    async with following(stack) as follower:
        await follower.next()
        stack.events.publish(KIND, OTHER, {"client_id": "theirs"})
        stack.events.publish(KIND, DEFAULT, {"client_id": "ours"})
        assert (await follower.next())[2]["data"] == {"client_id": "ours"}


async def test_who_comes_back_goes_on_without_a_snapshot(stack: Stack) -> None:
    async with following(stack) as follower:
        _, as_of, _ = await follower.next()
    stack.events.publish(KIND, DEFAULT, {"client_id": "while away"})
    async with following(stack, **{"Last-Event-ID": str(as_of)}) as follower:
        assert (await follower.next())[2]["data"] == {"client_id": "while away"}


async def test_who_comes_back_too_late_is_told_of_the_gap_and_gets_a_snapshot(stack: Stack) -> None:
    async with following(stack) as follower:
        _, as_of, _ = await follower.next()
    for _number in range(HELD_EVENTS + 1):
        stack.events.publish(KIND, DEFAULT, {})
    async with following(stack, **{"Last-Event-ID": str(as_of)}) as follower:
        assert (await follower.next())[::2] == ("gap", {"after": as_of})
        name, number, _ = await follower.next()
        assert (name, number) == ("snapshot", stack.events.last())


async def test_a_reader_that_was_too_slow_is_told_of_the_gap_and_gets_a_snapshot(
    stack: Stack,
) -> None:
    async with following(stack) as follower:
        await follower.next()
        # In one turn of the loop, so that it can't have been read meanwhile.
        for sent in range(2 * HELD_EVENTS):
            stack.events.publish(KIND, DEFAULT, {"number": sent})
        assert (await follower.next())[0] == "gap"
        name, number, _ = await follower.next()
        assert (name, number) == ("snapshot", stack.events.last())


async def test_without_follow_only_what_there_is_is_told(stack: Stack) -> None:
    async with stack.http.get(
        f"{stack.url}/v1/events?follow=false", headers=stack.as_admin()
    ) as response:
        assert (await response.text()).count("event: snapshot") == 1


async def test_a_number_that_is_none_is_refused(stack: Stack) -> None:
    async with stack.http.get(
        f"{stack.url}/v1/events?after=x", headers=stack.as_admin()
    ) as response:
        assert response.status == 422


async def test_a_farm_that_stops_ends_the_streams(stack: Stack) -> None:
    async with following(stack) as follower:
        await follower.next()
        stack.events.close()
        with pytest.raises(EOFError):
            await follower.next()


async def test_a_stream_without_news_shows_that_it_lives(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_events, "HEARTBEAT_S", 0.0)
    monkeypatch.setattr(cluster_events, "SLICE_S", 0.05)
    async with (
        asyncio.timeout(PATIENCE_S),
        stack.http.get(f"{stack.url}/v1/events", headers=stack.as_admin()) as response,
    ):
        await response.content.readuntil(b"\n\n")
        assert await response.content.readuntil(b"\n\n") == b": still here\n\n"


async def test_who_comes_from_a_coordinator_that_knows_more_is_told_no_gap(stack: Stack) -> None:
    ahead = stack.events.last() + 60_000_000
    async with asyncio.TaskGroup() as group:

        async def tell() -> None:
            await asyncio.wait_for(asked.wait(), PATIENCE_S)
            for seq, name in ((ahead, "known"), (ahead + 1, "next")):
                data = {"client_id": name}
                event = ClusterEvent(
                    seq=seq, kind=KIND, namespace=DEFAULT, at=system_clock(), data=data
                )
                stack.events.append(event)

        asked = asyncio.Event()
        group.create_task(tell())
        async with following(stack, **{"Last-Event-ID": str(ahead)}) as follower:
            asked.set()
            name, number, event = await follower.next()
            assert (name, number, event["data"]["client_id"]) == (KIND, ahead + 1, "next")


async def test_what_nobody_has_told_is_a_gap_in_the_end(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_events, "CATCH_UP_S", 0.01)
    after = str(stack.events.last() + 60_000_000)
    async with following(stack, **{"Last-Event-ID": after}) as follower:
        assert [(await follower.next())[0] for _ in range(2)] == ["gap", "snapshot"]
