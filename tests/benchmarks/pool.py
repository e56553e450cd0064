"""`python -m tests.benchmarks.pool`: what the pool itself costs, in memory and over Redis.

One process, so one core, besides Redis's own. Prints tables and writes `build/pool-bench.json`.
Half of the contexts are held all the time, and nobody names a strategy.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Any

from farm.stores.redis import RedisRegistry
from tests.benchmarks.figures import Row, met
from tests.benchmarks.pool_floor import (
    NS,
    TABS,
    Bare,
    Pool,
    bare_of,
    evalsha_calls,
    memory,
    over_redis,
    redis_running,
    settled,
)

_SIZES = (100, 1_000, 10_000, 50_000)


async def lending(pool: Pool, rounds: int, bare: Bare | None) -> Row:
    """Acquire and release, again and again; the bare script, if there is one, before or after."""
    took: list[tuple[float, float]] = []
    barely: list[float] = []
    for n in range(rounds):
        if bare is not None and n % 2:
            barely.append(await bare.ask())
        held, acquired, released = await pool.lend(f"t{n}")
        took.append((acquired, released))
        if bare is not None and not n % 2:
            barely.append(await bare.ask())
        await pool.report(held.client_id)  # clean again; not measured
    both = [acquired + released for acquired, released in took]
    row = {
        **_spread("acquire", [acquired for acquired, _ in took]),
        **_spread("release", [released for _, released in took]),
        "pairs_per_s": round(len(both) / sum(both)),
    }
    return row | (_spread("bare_evalsha", barely) if bare is not None else {})


async def missing(pool: Pool, rounds: int) -> Row:
    """Ask for what nobody has: it reads everything, and says why."""
    took = []
    for n in range(rounds):
        begun = perf_counter()
        assert await pool.manager.acquire(NS, f"m{n}", requirements={"region": "none"}) is None
        took.append(perf_counter() - begun)
    return _spread("miss", took)


async def reporting(pool: Pool, rounds: int) -> Row:
    """Take in reports of one agent after the other."""
    clients = list(pool.numbers)
    begun = perf_counter()
    for n in range(rounds):
        await pool.report(clients[n % len(clients)])
    return {"reported_contexts_per_s": round(rounds * TABS / (perf_counter() - begun))}


async def waking(waits: Pool, releases: Pool, rounds: int) -> Row:
    """Release the only slot, from another coordinator, while somebody is parked for it."""
    agent = await waits.agent("one-slot", tabs=2, slots=1)
    held = await releases.manager.acquire(NS, "first")
    took = []

    async def wait(task: str) -> Any:
        got = await waits.manager.acquire(NS, task, wait=60)
        return got, perf_counter()

    for n in range(rounds):
        async with asyncio.TaskGroup() as group:
            waiter = group.create_task(wait(f"w{n}"))
            await settled()
            begun = perf_counter()
            assert held is not None
            await held.release()
        held, at = waiter.result()
        took.append(at - begun)
        await waits.report(agent, tabs=2)
    return _spread("wake", took)


async def hopping(pool: Pool, rounds: int) -> Row:
    """Publish a number and have it, over connections of their own: what no wake can be under."""
    assert isinstance(pool.registry, RedisRegistry)
    took = []
    async with pool.registry.redis.pubsub(ignore_subscribe_messages=True) as subscription:
        await subscription.subscribe("hop")
        while await subscription.get_message(timeout=0.05) is not None:
            pass
        for n in range(rounds):
            async with asyncio.TaskGroup() as group:
                heard = group.create_task(_next_message(subscription))
                await settled()
                begun = perf_counter()
                await pool.registry.redis.publish("hop", n)
            took.append(heard.result() - begun)
    return _spread("hop", took)


async def _next_message(subscription: Any) -> float:
    while await subscription.get_message(timeout=60) is None:
        pass
    return perf_counter()


def _spread(name: str, seconds: list[float]) -> Row:
    ordered = sorted(seconds)
    return {
        f"{name}_p50_us": round(statistics.median(ordered) * 1e6, 1),
        f"{name}_p99_us": round(ordered[int(len(ordered) * 0.99)] * 1e6, 1),
    }


async def one_size(pool: Pool, contexts: int, rounds: int) -> Row:
    """Measure one store at one size."""
    await pool.fill(contexts)
    registry = pool.registry
    bare = await bare_of(pool)
    await lending(pool, rounds // 10, None)  # warm
    row: Row = {"contexts": contexts, **await lending(pool, rounds, bare)}
    if isinstance(registry, RedisRegistry):
        before = await evalsha_calls(registry.redis)
        assert await pool.manager.acquire(NS, "counted") is not None
        row["round_trips"] = await evalsha_calls(registry.redis) - before
    row |= await missing(pool, max(20, rounds // 100))
    return row | await reporting(pool, rounds)


async def run(sizes: tuple[int, ...], rounds: int, wakes: int) -> Row:
    """Measure everything; return it."""
    result: Row = {"memory": [], "redis": []}
    with redis_running() as url:

        @contextlib.asynccontextmanager
        async def pool_of(store: str) -> AsyncIterator[Pool]:
            if store == "memory":
                yield memory()
            else:
                async with over_redis(url) as pool:
                    yield pool

        for size in sizes:
            for store in ("memory", "redis"):
                async with pool_of(store) as pool:
                    result[store].append(await one_size(pool, size, rounds))
        alone = memory()
        result["memory_wake"] = await waking(alone, alone, wakes)
        async with over_redis(url, shard="w") as one, over_redis(url, shard="w") as other:
            result["redis_wake"] = await waking(one, other, wakes) | await hopping(other, wakes)
    return result


def verdicts(result: Row) -> list[str]:
    """Say which targets are met."""
    lines = []
    for store in ("memory", "redis"):
        first, last = result[store][0], result[store][-1]
        growth = last["acquire_p50_us"] / first["acquire_p50_us"]
        lines.append(
            f"{store}: a success at {last['contexts']} contexts takes {growth:.2f} of one at "
            f"{first['contexts']} ({met(growth <= 2)} 2)"
        )
    slowest = max(row["acquire_p50_us"] for row in result["memory"])
    lines.append(f"memory: acquire p50 at most {slowest} us ({met(slowest <= 100)} 100)")
    for row in result["redis"]:
        times = row["acquire_p50_us"] / row["bare_evalsha_p50_us"]
        lines.append(
            f"redis at {row['contexts']}: acquire in {row['round_trips']} round trips "
            f"({met(row['round_trips'] <= 2)} 2), {times:.2f} of a bare EVALSHA "
            f"({met(times <= 2.5)} 2.5)"
        )
    wake = result["redis_wake"]
    hops = wake["wake_p50_us"] / wake["hop_p50_us"]
    lines.append(f"redis: from release to the waiter's assignment {hops:.2f} of a bare hop")
    return lines


def _print(result: Row) -> None:
    for store in ("memory", "redis"):
        keys = list(result[store][0])
        print(f"\n{store}\n" + " ".join(f"{key:>{len(key)}}" for key in keys))
        for row in result[store]:
            print(" ".join(f"{row[key]:>{len(key)}}" for key in keys))
    for name in ("memory_wake", "redis_wake"):
        print(f"{name}: {result[name]}")
    print(*verdicts(result), sep="\n")


def main() -> None:
    """Read the arguments, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--wakes", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(_SIZES))
    parser.add_argument("--out", type=Path, default=Path("build/pool-bench.json"))
    given = parser.parse_args()
    result = asyncio.run(run(tuple(given.sizes), given.rounds, given.wakes))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result | {"verdicts": verdicts(result)}, indent=2) + "\n")
    _print(result)


if __name__ == "__main__":
    main()
