"""What choosing among very many agents takes: of a tab, of a slot, and to find that none will do.

Times are of the wall; `cpu_ms` is of this process alone, so without Redis.
"""

import statistics
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter, process_time
from typing import Any

from farm.core.model import Request, TaskId
from tests.benchmarks.figures import Row, met, spread
from tests.benchmarks.pool_floor import (
    NOW,
    NS,
    Bare,
    Pool,
    bare_of,
    memory,
    over_redis,
    redis_running,
)

_MISSES = 5
Ask = Callable[[str], Awaitable[float]]
"""Asks for a task, and returns how many seconds that took."""


async def choosing(sizes: Sequence[int], rounds: int) -> dict[str, list[Row]]:
    """Measure each store with so many agents of one tab and one slot."""
    found: dict[str, list[Row]] = {"memory": [], "redis": []}
    with redis_running() as url:
        for size in sizes:
            found["memory"].append(await _choosing(memory(), size, rounds))
            async with over_redis(url) as pool:
                found["redis"].append(await _choosing(pool, size, rounds))
    return found


async def _choosing(pool: Pool, agents: int, rounds: int) -> Row:
    for n in range(agents):
        await pool.agent(f"agent-{n:05}", tabs=1, slots=1)
    bare = await bare_of(pool)
    row = {
        "agents": agents,
        **await _timed("acquire", rounds, bare, lambda task: _lend(pool, task)),
        **await _timed("reserve", rounds, bare, lambda task: _reserve(pool, task)),
        **await _missing("unfit", lambda task: _no_tab(pool, task, region="none")),
        **await _missing("unfit_slot", lambda task: _no_slot(pool, task, region="none")),
    }
    for n in range(agents):
        assert await pool.manager.acquire(NS, f"held-{n}") is not None
    return {
        **row,
        **await _missing("full", lambda task: _no_tab(pool, task)),
        **await _timed("full_slot", rounds, bare, lambda task: _no_slot(pool, task)),
    }


async def _timed(name: str, rounds: int, bare: Bare | None, ask: Ask) -> Row:
    """Ask so often; over Redis a script that does nothing is asked in between."""
    took, barely = [], []
    for n in range(rounds):
        took.append(await ask(f"{name}{n}"))
        if bare is not None:
            barely.append(await bare.ask())
    row = spread(name, took)
    if bare is not None:
        row[f"{name}_of_bare"] = round(statistics.median(took) / statistics.median(barely), 2)
    return row


async def _lend(pool: Pool, task: str) -> float:
    """Take a tab; give it back and clean it, which does not count."""
    held, took, _ = await pool.lend(task)
    await pool.report(held.client_id, tabs=1)
    return took


async def _reserve(pool: Pool, task: str) -> float:
    """Take the slot of whose turn it is; give it back, which does not count."""
    begun = perf_counter()
    reserved = await pool.registry.select_and_reserve(_request(task), now=NOW)
    took = perf_counter() - begun
    assert reserved is not None
    await pool.registry.cancel(reserved)
    return took


async def _missing(name: str, ask: Ask) -> Row:
    """Ask for what nobody has; the first does not count, as what it has read may be kept."""
    await ask("first")
    before = process_time()
    took = [await ask(f"m{n}") for n in range(_MISSES)]
    cpu_ms = 1000 * (process_time() - before) / _MISSES
    return {**spread(name, took), f"{name}_cpu_ms": round(cpu_ms, 2)}


async def _no_tab(pool: Pool, task: str, **requirements: Any) -> float:
    begun = perf_counter()
    assert await pool.manager.acquire(NS, task, requirements=requirements) is None
    return perf_counter() - begun


async def _no_slot(pool: Pool, task: str, **requirements: Any) -> float:
    begun = perf_counter()
    asked = _request(task, **requirements)
    assert await pool.registry.select_and_reserve(asked, now=NOW) is None
    return perf_counter() - begun


def _request(task: str, **requirements: Any) -> Request:
    return Request(namespace=NS, task_id=TaskId(task), requirements=requirements)


def verdicts(found: dict[str, list[Row]]) -> list[str]:
    """Say which targets are met: with more agents, what needs no look at all takes no longer."""
    lines = []
    for store, rows in found.items():
        few, many = rows[0], rows[-1]
        for name, what in _AS_QUICK.items():
            # Over Redis by what a bare script takes, which tells how busy the machine is.
            figure = f"{name}_of_bare" if f"{name}_of_bare" in few else f"{name}_p50_ms"
            growth = many[figure] / max(few[figure], 0.001)
            lines.append(
                f"{store}: {what} at {many['agents']} agents takes {growth:.2f} of one at "
                f"{few['agents']} ({met(growth <= 2)} 2)"
            )
        for name in ("full", "unfit"):
            each = 1000 * many[f"{name}_cpu_ms"] / many["agents"]
            lines.append(f"{store}: a miss costs {each:.1f} CPU-us an agent ({name})")
    return lines


_AS_QUICK = {
    "acquire": "taking a tab",
    "reserve": "select_and_reserve",
    "full_slot": "select_and_reserve where all are full",
}
