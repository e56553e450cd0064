"""A catalogue of task queues: what is not in it is refused at once, whoever serves it."""

import asyncio

from farm.core.census import PoolVerdict
from farm.manager import Acquired, NotAcquired
from tests.manager.floor import NS, Floor


async def test_a_queue_that_is_not_declared_is_refused_at_once_though_somebody_serves_it(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", task_queue="strange")
    manager = floor.manager(task_queues=("known",))
    async with asyncio.timeout(5):
        outcome = await manager.try_acquire(NS, "t", task_queue="strange", wait=3600)
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.pool is PoolVerdict.NO_QUEUE_DECLARATION
    assert outcome.verdict.pool.structural
    assert outcome.verdict.census is not None
    assert outcome.verdict.census.compatible == 1
    assert await floor.used() == 0


async def test_without_a_catalogue_and_for_what_is_in_it_nothing_is_refused(floor: Floor) -> None:
    await floor.agent("a", "W1.a", task_queue="known")
    declared = floor.manager(task_queues=("known",))
    assert isinstance(await declared.try_acquire(NS, "t", task_queue="known"), Acquired)
    unserved = await floor.manager().try_acquire(NS, "t", task_queue="other")
    assert isinstance(unserved, NotAcquired)
    assert unserved.verdict.pool is PoolVerdict.NO_LIVE_POLLERS
