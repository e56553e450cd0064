"""The registry over a Redis that forgets, fails, is full or is not what it should be."""

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from farm.core.commands import CommandEvidence, Retention
from farm.core.model import ContextId, Token
from farm.core.reservation import Reservation
from farm.errors import ConflictError, StoreUnavailableError
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisClock, RedisCommandLog, RedisRegistry, RedisRoutes, connect
from farm.stores.redis.scripts import SHARED
from tests.patience import PATIENCE_S
from tests.stores import redis_server
from tests.stores.own_redis import New, over, own_url, until_subscribed
from tests.stores.pool import (
    LINK,
    NS,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    A,
    assigned,
    at,
    hello,
    only,
    registered,
    reported,
    request,
    window,
)

__all__ = ["own_url"]


T1 = ContextId("T1")


IMPATIENT_S = 1.5
"""What does not answer is waited for so long; what does may take as long on a busy machine."""


@pytest.fixture
async def spoiled(own_url: str) -> Any:
    """A registry with an assigned context, and a client to do harm with."""
    registry = over(own_url)
    await registry.open(store_epoch=7)
    await reported(registry, "T1", client=await registered(registry))
    await assigned(registry)
    redis = connect(own_url)
    yield registry, redis
    await registry.close()
    await registry.redis.aclose()
    await redis.aclose()


Spoiled = tuple[RedisRegistry, Redis]


async def test_nothing_is_taken_for_gone_because_redis_lost_its_memory(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    held = (await only(registry)).assignments[T1]
    assert await registry.store_epoch() == 7
    await redis.flushall()
    assert await registry.store_epoch() is None
    place = (A, T1, held.token)
    for ask in (
        lambda: registry.snapshot(now=T0),
        lambda: registry.holds(*place),
        lambda: registry.release(*place),
        lambda: registry.renew(*place, now=T0, timeout_s=1),
        lambda: registry.release_expired(now=T0),
        lambda: registry.register(hello(), epoch_name="e", highest_token=None, now=T0),
        lambda: registry.changed_since(registry.generation()),
    ):
        with pytest.raises(StoreUnavailableError) as caught:
            await ask()
        assert caught.value.context["code"] == "FORGOTTEN"


async def test_the_owner_opens_it_again_and_puts_back_what_still_runs(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    held = (await only(registry)).assignments[T1]
    await redis.flushall()
    assert await registry.open(store_epoch=8) == 8
    assert (await registry.snapshot(now=T0)).clients == ()
    client = await registered(registry, highest=held.token)
    assert await registry.restore(held)
    await reported(registry, "T1", "T2", client=client)
    assert await registry.holds(A, T1, held.token)
    assert (await assigned(registry, "T2")).token > held.token


async def test_coordinators_of_one_redis_share_its_store_epoch(own_url: str) -> None:
    first, second = over(own_url), over(own_url)
    assert await first.open(store_epoch=3) == 3
    assert await second.open(store_epoch=4) == 3
    await registered(first)
    assert (await only(second)).client_id == A
    await first.redis.flushall()
    assert await first.open(store_epoch=5) == 5
    with pytest.raises(StoreUnavailableError):
        await second.snapshot(now=T0)
    assert await second.open(store_epoch=6) == 5
    assert (await second.snapshot(now=T0)).clients == ()
    await first.redis.aclose()
    await second.redis.aclose()


async def test_tokens_grow_though_redis_came_back_with_a_past_state(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    held = (await only(registry)).assignments[T1]
    await redis.hset("{farm:0}:tokens", "a", "7:1")
    await registry.release(A, T1, held.token)
    await reported(registry, "T1", client=await registered(registry))
    assert (await assigned(registry)).token > held.token


async def test_a_script_that_redis_forgot_is_sent_again(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    await redis.script_flush()
    assert (await only(registry)).used_slots() == 1


async def test_a_redis_that_is_away_is_unavailable_and_never_empty(
    redis_url: str, tmp_path: Path
) -> None:
    with redis_server.running(tmp_path) as url:
        registry = over(url)
        await registry.open(store_epoch=1)
        await registered(registry)
        waiting = asyncio.ensure_future(registry.changed_since(registry.generation()))
        await until_subscribed(registry.redis)
    for ask in (
        lambda: waiting,
        lambda: registry.snapshot(now=T0),
        lambda: registry.store_epoch(),
        lambda: registry.open(store_epoch=2),
        lambda: registry.changed_since(registry.generation()),
        lambda: RedisClock(registry.redis, steady=lambda: 0.0).read(),
    ):
        with pytest.raises(StoreUnavailableError):
            await ask()
    await registry.close()
    await registry.redis.aclose()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("maxmemory", "1", "OOM|memory"), ("min-replicas-to-write", "1", "NOREPLICAS")],
)
async def test_a_redis_that_takes_no_writes_is_unavailable_and_changes_nothing(
    spoiled: Spoiled, name: str, value: str, error: str
) -> None:
    registry, redis = spoiled
    await reported(registry, "T1", "T2", client=await registered(registry))
    before = await only(registry)
    await redis.config_set(name, value)
    with pytest.raises(StoreUnavailableError, match=error):
        await assigned(registry, "T2")
    with pytest.raises(StoreUnavailableError, match=error):
        await registry.reserve_window(A, identity=None, now=T0)
    await redis.config_set(name, "0")
    assert await only(registry) == before


async def test_a_redis_that_is_full_still_takes_what_makes_room(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    held = (await only(registry)).assignments[T1]
    await redis.config_set("maxmemory", "1")
    assert await registry.release(A, T1, held.token)


async def test_a_replica_is_unavailable(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    await redis.replicaof("127.0.0.1", "1")
    with pytest.raises(StoreUnavailableError):
        await registry.set_draining(A)


async def test_a_redis_that_is_slow_is_unavailable(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    impatient = RedisRegistry(
        connect(
            f"unix://{registry.redis.connection_pool.connection_kwargs['path']}",
            timeout_s=IMPATIENT_S,
        ),
        presence_window_s=WINDOW_S,
    )
    await impatient.open(store_epoch=1)
    await redis.client_pause(4_000)
    with pytest.raises(StoreUnavailableError):
        await impatient.snapshot(now=T0)
    await redis.client_unpause()
    await impatient.redis.aclose()


async def test_what_could_not_be_given_back_is_when_redis_can_be_reached(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    one = await window(registry)
    await redis.config_set("min-replicas-to-write", "1")
    with pytest.raises(StoreUnavailableError):
        await registry.cancel(one)
    with pytest.raises(StoreUnavailableError):
        await registry.release_expired(now=T0)
    await redis.config_set("min-replicas-to-write", "0")
    assert (await only(registry)).opening_windows == 1
    await registry.release_expired(now=T0)
    assert (await only(registry)).opening_windows == 0


@pytest.mark.parametrize("how", ["window", "slot"])
async def test_what_was_reserved_by_a_redis_that_did_not_answer_is_given_back(
    tmp_path: Path, how: str
) -> None:
    with redis_server.process(tmp_path) as (url, server):
        registry, impatient = (
            over(url),
            RedisRegistry(connect(url, timeout_s=IMPATIENT_S), presence_window_s=WINDOW_S),
        )
        for one in (registry, impatient):
            await one.open(store_epoch=1)
        await registered(registry)

        async def reserve() -> object:
            if how == "window":
                return await impatient.reserve_window(A, identity=None, now=T0)
            return await impatient.select_and_reserve(request(), now=T0)

        first = await reserve()
        assert isinstance(first, Reservation)
        await impatient.cancel(first)
        server.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailableError):
                await reserve()
        finally:
            server.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            while (await only(registry)).used_slots() == 0:
                pass
        await impatient.release_expired(now=T0)
        assert (await only(registry)).used_slots() == 0
        for one in (registry, impatient):
            await one.redis.aclose()


async def test_a_mistake_in_a_script_is_not_hidden(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    await redis.set("{farm:0}:contexts:a", "not a hash")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await registry.assign(request(), A, T1, now=T0, timeout_s=1)


async def test_a_registry_that_is_not_open_is_unavailable(redis_url: str) -> None:
    registry = over(redis_url)
    with pytest.raises(StoreUnavailableError, match="not open"):
        await registry.snapshot(now=T0)
    await registry.redis.aclose()


async def test_a_redis_that_may_evict_is_warned_of_or_refused(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    with capture_logs() as quiet:
        await registry.open(store_epoch=1)
    assert quiet == []
    await redis.config_set("maxmemory-policy", "allkeys-lru")
    with capture_logs() as logs:
        await registry.open(store_epoch=1)
    assert [(one["event"], one["policy"]) for one in logs] == [("redis.may_evict", "allkeys-lru")]
    strict = RedisRegistry(redis, presence_window_s=WINDOW_S, require_noeviction=True)
    with pytest.raises(ConflictError, match="noeviction"):
        await strict.open(store_epoch=1)


async def test_a_redis_that_does_not_show_its_settings_counts_as_unsafe(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    await redis.acl_setuser("default", commands=["-config"])
    with capture_logs() as logs:
        await registry.open(store_epoch=1)
    assert [(one["event"], one["policy"]) for one in logs] == [("redis.may_evict", "not shown")]


async def test_a_redis_that_keeps_only_a_part_is_warned_of(spoiled: Spoiled) -> None:
    registry, redis = spoiled
    await redis.config_set("appendonly", "yes")
    for appendfsync, warned in (("everysec", ["redis.partly_durable"]), ("always", [])):
        await redis.config_set("appendfsync", appendfsync)
        with capture_logs() as logs:
            await registry.open(store_epoch=1)
        assert [one["event"] for one in logs] == warned


async def test_every_key_has_the_hash_tag_of_its_shard_and_none_ever_expires(
    spoiled: Spoiled,
) -> None:
    registry, redis = spoiled
    await registered(registry, hello("b", metadata={"k": 1}), epoch="b")
    await registry.reserve_window(A, identity="shop", now=T0)
    log = RedisCommandLog(registry, retention=Retention(keep=1))
    for name in ("c1", "c2"):
        evidence = CommandEvidence(
            command_id=name, namespace=NS, client_id=A, kind="run", admitted_at=T0
        )
        assert await log.admit(evidence)
    routes = RedisRoutes(registry, coordinator=CoordinatorId("one"))
    await routes.claim(A, LINK)
    assert await routes.post(routes.coordinator, "letter")
    keys = await redis.keys("*")
    assert len(keys) > 10
    for key in keys:
        assert str(key).startswith("{farm:0}:")
        assert await redis.ttl(key) == -1


async def test_the_scripts_stay_in_one_slot_of_a_cluster(redis_url: str, tmp_path: Path) -> None:
    with redis_server.running(tmp_path, "--cluster-enabled", "yes") as url:
        registry = over(url)
        await _cluster(registry.redis, "ADDSLOTSRANGE", 0, 16383)
        async with asyncio.timeout(PATIENCE_S):
            while "cluster_state:ok" not in await _cluster(registry.redis, "INFO"):
                pass
        await registry.open(store_epoch=1)
        client = await registered(registry, hello("a", metadata={"k": 1}))
        await reported(registry, "T1", client=client, identity="shop")
        await registry.reserve_window(A, identity="mail", now=T0)
        held = await registry.assign(request(identity="shop"), A, T1, now=T0, timeout_s=TIMEOUT_S)
        assert await registry.release_expired(now=at(TIMEOUT_S)) == (held,)
        assert (await only(registry)).opening_windows == 1
        await registry.redis.aclose()


async def _cluster(redis: Redis, *words: str | int) -> str:
    return str(await redis.execute_command("CLUSTER", *words))  # type: ignore[no-untyped-call]


def test_every_script_says_first_what_it_takes() -> None:
    for script in (files("farm.stores.redis") / "scripts").iterdir():
        head = re.match(r"(-- .*\n)+", script.read_text())
        assert head, script.name
        if script.name.removesuffix(".lua") not in SHARED[1:]:
            assert "ARGV: " in head[0], script.name


async def test_who_is_cancelled_before_a_reservation_is_answered_leaves_none(
    new_redis_registry: New,
) -> None:
    registry: Any = await new_redis_registry(1)
    await registered(registry)
    run, reserved = registry.run, asyncio.Event()

    async def loses_the_answer(name: str, *args: str | int | float) -> Any:
        reply = await run(name, *args)
        if name == "reserve_window":
            reserved.set()
            await asyncio.Event().wait()
        return reply

    registry.run = loses_the_answer
    async with asyncio.TaskGroup() as group:
        task = group.create_task(registry.reserve_window(A, identity="shop", now=T0))
        await reserved.wait()
        assert (await only(registry)).opening_windows == 1
        task.cancel()
    assert task.cancelled()
    now = await only(registry)
    assert (now.used_slots(), now.opening_identities) == (0, {})


async def test_an_agent_may_have_seen_a_token_beyond_the_time(new_redis_registry: New) -> None:
    registry = await new_redis_registry(1)
    seen = Token(store_epoch=1, counter=2**52)
    await reported(registry, "T1", "T2", client=await registered(registry, highest=seen))
    for tab, counter in (("T1", 2**52 + 1), ("T2", 2**52 + 2)):
        assert (await assigned(registry, tab)).token == Token(store_epoch=1, counter=counter)


@pytest.mark.parametrize("turns", range(12))
async def test_what_calls_redis_again_and_again_can_be_cancelled_at_any_moment(
    new_redis_registry: Callable[[int], Awaitable[RedisRegistry]], turns: int
) -> None:
    registry = await new_redis_registry(1)

    async def again_and_again() -> None:
        while True:
            await registry.store_epoch()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loop = group.create_task(again_and_again())
        for _ in range(turns):
            await asyncio.sleep(0)
        loop.cancel()
    assert loop.cancelled()
