"""What a coordinator had that is there no more comes back with its lease, at once and once (P5)."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farm.core.model import Assignment, Capacity, Client, ContextId, LinkId, TaskId
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.routes import CoordinatorId, Links
from farm.stores.redis import RedisRegistry, RedisRoutes
from tests.patience import PATIENCE_S
from tests.stores.pool import (
    LINK,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    assigned,
    hello,
    only,
    registered,
    reported,
    request,
    tab,
    window,
)
from tests.stores.reserver import COMMITTED

ROOT = Path(__file__).parents[2]
T1 = ContextId("T1")
ROOMY = Capacity(max_concurrency=9, max_windows=9, max_tabs_per_window=9)
LONG_S, LEASE_S = 3600.0, 2.0


@pytest.fixture
async def registry(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]],
) -> RedisRegistry:
    registry = await new_redis_registry(1)
    client = await registered(registry, hello(capacity=ROOMY))
    await reported(registry, "T1", "T2", "T3", client=client)
    return registry


async def of(registry: RedisRegistry, name: str, *, lease_s: float) -> RedisRegistry:
    """Another coordinator; one whose lease is nothing is dead as soon as it has reserved."""
    made = RedisRegistry(
        registry.redis,
        presence_window_s=WINDOW_S,
        shard=registry.shard,
        coordinator=CoordinatorId(name),
        lease_s=lease_s,
    )
    await made.open(store_epoch=1)
    return made


def routes(registry: RedisRegistry, name: str, *, lease_s: float) -> RedisRoutes:
    return RedisRoutes(registry, coordinator=CoordinatorId(name), lease_s=lease_s)


async def judge(registry: RedisRegistry) -> Links:
    """Look once, as somebody who has been there for as long as its own lease, which is nothing."""
    return await routes(registry, "judge", lease_s=0.0).renew(())


async def slot(registry: RedisRegistry) -> Reservation:
    found = await registry.select_and_reserve(request(), now=T0)
    assert found is not None
    return found


async def is_free(registry: RedisRegistry) -> bool:
    client = await only(registry)
    there = (client.opening_windows, client.opening_tabs, client.opening_identities)
    return (client.used_slots(), client.reserved_slots, *there) == (0, 0, 0, {}, {})


async def test_whatever_it_had_reserved_is_given_back_and_who_waits_is_woken(
    registry: RedisRegistry,
) -> None:
    dead = await of(registry, "dead", lease_s=0.0)
    await window(dead, identity="shop")
    await tab(dead)
    await slot(dead)
    assert (await only(registry)).used_slots() == 3
    generation = registry.generation()
    await judge(registry)
    assert await is_free(registry)
    assert registry.generation() > generation
    await window(registry, identity="shop")
    generation = registry.generation()
    await judge(registry)
    assert (await only(registry)).used_slots() == 1
    assert registry.generation() == generation


async def test_what_it_had_assigned_stays_whatever_it_was_before(registry: RedisRegistry) -> None:
    dead = await of(registry, "dead", lease_s=0.0)
    held = await assigned(dead, "T2", task="other")
    became = await dead.commit(
        request(), A, T1, reservation=await slot(dead), now=T0, timeout_s=TIMEOUT_S
    )
    await judge(registry)
    assert set((await only(registry)).assignments.values()) == {held, became}
    assert (await only(registry)).used_slots() == 2


async def test_what_the_living_have_reserved_stays_and_what_is_nobodys_too(
    registry: RedisRegistry,
) -> None:
    living = await of(registry, "living", lease_s=LONG_S)
    for one in (living, registry):
        await slot(one)
    await judge(registry)
    assert (await only(registry)).reserved_slots == 2


async def test_one_that_leaves_gives_back_what_it_has_left_and_wakes_who_waits(
    registry: RedisRegistry,
) -> None:
    leaving = await of(registry, "leaving", lease_s=LONG_S)
    await slot(leaving)
    generation = registry.generation()
    await routes(leaving, "leaving", lease_s=LONG_S).leave()
    assert await is_free(registry)
    assert registry.generation() > generation


async def test_one_that_comes_back_finds_it_gone_and_takes_nothing_with_it(
    registry: RedisRegistry,
) -> None:
    late = await of(registry, "late", lease_s=0.0)
    one, other = await slot(late), await window(late)
    await judge(registry)
    for _ in range(2):
        committed = await late.commit(
            request(), A, T1, reservation=one, now=T0, timeout_s=TIMEOUT_S
        )
        assert committed is Denial.GONE
        settled = await late.settle(request(), other, T1, now=T0, timeout_s=TIMEOUT_S)
        assert settled is Denial.GONE
        await late.cancel(one)
        await late.cancel(other)
        assert await is_free(registry)
    back = await of(registry, "late", lease_s=LONG_S)
    again = await slot(back)
    await judge(registry)
    assert (await only(registry)).used_slots() == 1
    assert isinstance(
        await back.commit(request(), A, T1, reservation=again, now=T0, timeout_s=TIMEOUT_S),
        Assignment,
    )
    assert (await only(registry)).used_slots() == 1


async def test_one_that_nobody_has_seen_lapse_goes_on_with_what_it_has(
    registry: RedisRegistry,
) -> None:
    slow = await of(registry, "slow", lease_s=0.0)
    one = await slot(slow)
    await routes(slow, "slow", lease_s=LONG_S).renew(())
    await judge(registry)
    found = await slow.commit(request(), A, T1, reservation=one, now=T0, timeout_s=TIMEOUT_S)
    assert isinstance(found, Assignment)
    assert (await only(registry)).used_slots() == 1


async def test_who_was_away_itself_judges_nobody(registry: RedisRegistry) -> None:
    """As when Redis was: all leases are over, and who renews first knows no more than that."""
    other = await of(registry, "other", lease_s=0.0)
    await slot(other)
    first = routes(registry, "first", lease_s=LONG_S)
    for _ in range(3):
        await first.renew(())
    assert (await only(registry)).reserved_slots == 1


async def test_a_new_life_of_an_agent_leaves_nothing_to_give_back(registry: RedisRegistry) -> None:
    dead = await of(registry, "dead", lease_s=0.0)
    await slot(dead)
    await registered(registry, hello(capacity=ROOMY), epoch="browser-2")
    await slot(registry)
    await judge(registry)
    assert (await only(registry)).reserved_slots == 1
    await slot(dead)
    assert await registry.remove(A, epoch=2) == ()
    await judge(registry)
    assert (await registry.snapshot(now=T0)).clients == ()


async def test_its_links_are_closed_with_its_lease_and_no_others(registry: RedisRegistry) -> None:
    dead = routes(registry, "dead", lease_s=0.0)
    moved = await registered(registry, hello("moved", link="old"), epoch="m")
    other = await registered(registry, hello("other"), epoch="o")
    await dead.claim(A, LINK)
    await dead.claim(moved.client_id, LinkId("old"))
    await registered(registry, hello("moved", link="new"), epoch="m")
    generation = registry.generation()
    assert await judge(registry) == [(A, LINK)]
    links = {c.client_id: c.link for c in (await registry.snapshot(now=T0)).clients}
    assert links == {A: None, "moved": "new", "other": other.link}
    assert registry.generation() > generation
    assert await registry.select_and_reserve(request(client_type=None), now=T0) is not None
    # The coordinator may be there still, and hold the link: its agent is not registered by it.
    assert not await registry.heard(A, LINK, now=T0)


# Processes


class Process:
    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self.running = running

    async def says(self) -> str:
        assert self.running.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            return (await self.running.stdout.readline()).decode().strip()

    async def tries(self) -> tuple[str, str]:
        """What comes of committing the slot it had reserved, and of taking another."""
        assert self.running.stdin is not None
        self.running.stdin.write(b"try\n")
        return await self.says(), await self.says()


@asynccontextmanager
async def reserver(
    url: str, registry: RedisRegistry, *, lease_s: float = LEASE_S
) -> AsyncIterator[Process]:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.reserver"),
        *(url, registry.shard, "other", f"{lease_s}"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        process = Process(running)
        assert await process.says() == "reserved"
        yield process
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


@pytest.fixture
async def watched(registry: RedisRegistry) -> AsyncIterator[RedisRegistry]:
    """A registry of a coordinator that renews as coordinators do."""
    mine = routes(registry, "one", lease_s=LEASE_S)

    async def renew() -> None:
        while True:
            await mine.renew(())
            await asyncio.sleep(LEASE_S / 4)

    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(renew())
        yield registry
        renewing.cancel()


async def until(registry: RedisRegistry, condition: Callable[[Client], bool]) -> Client:
    async with asyncio.timeout(PATIENCE_S):
        while not condition(client := await only(registry)):
            await asyncio.sleep(0.01)
    return client


def _has_given_back(client: Client) -> bool:
    assert client.used_slots() in {1, 4}  # in one step
    return client.used_slots() == 1


async def test_one_that_is_killed_keeps_its_reservations_for_its_lease_and_its_assignment(
    redis_url: str, watched: RedisRegistry
) -> None:
    async with reserver(redis_url, watched) as other:
        before = await only(watched)
        assert (before.used_slots(), before.link) == (4, LINK)
        other.running.kill()
        await other.running.wait()
        after = await until(watched, _has_given_back)
        assert [held.task_id for held in after.assignments.values()] == [TaskId(COMMITTED)]
        assert (after.link, after.opening_windows, after.opening_tabs) == (None, 0, {})


async def test_one_that_was_stopped_comes_back_without_its_reservations_and_begins_anew(
    redis_url: str, watched: RedisRegistry
) -> None:
    async with reserver(redis_url, watched) as other:
        other.running.send_signal(signal.SIGSTOP)
        try:
            after = await until(watched, _has_given_back)
            assert list(after.assignments) == [T1]
            await registered(watched, hello(capacity=ROOMY, link="link-2"))
        finally:
            other.running.send_signal(signal.SIGCONT)
        assert await other.tries() == (Denial.GONE.value, "Reservation")
        now = await only(watched)
        assert (now.used_slots(), now.reserved_slots) == (2, 1)
        assert await other.tries() == (Denial.GONE.value, "Reservation")
        assert (await only(watched)).used_slots() == 3


async def test_one_that_is_stopped_for_less_than_its_lease_keeps_all(
    redis_url: str, watched: RedisRegistry
) -> None:
    async with reserver(redis_url, watched, lease_s=30.0) as other:
        other.running.send_signal(signal.SIGSTOP)
        other.running.send_signal(signal.SIGCONT)
        assert await other.tries() == ("assigned", "Reservation")
        now = await only(watched)
        assert (now.used_slots(), len(now.assignments), now.link) == (5, 2, LINK)
