import asyncio

from farm.jobs.feed import JobFeed
from tests.patience import PATIENCE_S


async def test_a_change_between_reading_and_waiting_is_not_lost() -> None:
    feed = JobFeed()
    with feed.subscribe("a") as watcher:
        generation = watcher.generation()
        feed.publish("a")
        assert await watcher.changed_since(generation, within_s=0)


async def test_a_watcher_waits_until_its_own_job_changes() -> None:
    feed = JobFeed()
    with feed.subscribe("a") as watcher:
        generation = watcher.generation()
        feed.publish("b")
        assert not await watcher.changed_since(generation, within_s=0.01)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            waits = group.create_task(watcher.changed_since(generation, within_s=60))
            await asyncio.sleep(0)
            feed.publish("a")
        assert waits.result()


async def test_many_changes_wake_a_watcher_once() -> None:
    feed = JobFeed()
    with feed.subscribe("a") as watcher:
        for _ in range(1000):
            feed.publish("a")
        assert await watcher.changed_since(0, within_s=0)
        assert not await watcher.changed_since(watcher.generation(), within_s=0.01)


async def test_who_waits_for_rest_is_left_alone_by_everything_else() -> None:
    feed = JobFeed()
    with feed.subscribe("a", rest_only=True) as rest, feed.subscribe("a") as everything:
        feed.publish("a", may_rest=False)
        assert not await rest.changed_since(0, within_s=0.01)
        assert await everything.changed_since(0, within_s=0)
        feed.publish("a")
        assert await rest.changed_since(0, within_s=0)


async def test_nothing_is_kept_of_jobs_that_nobody_watches() -> None:
    feed = JobFeed()
    for number in range(100):
        feed.publish(str(number))
        with feed.subscribe(str(number)), feed.subscribe(str(number)):
            assert feed.watched() == 2
    assert feed.watched() == 0
    assert feed._watchers == {}


async def test_closing_wakes_everybody() -> None:
    feed = JobFeed()
    with feed.subscribe("a") as watcher:
        feed.close()
        assert await watcher.changed_since(0, within_s=0)
    assert feed.closed
