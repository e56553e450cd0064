"""What is remembered of agents that have gone."""

from typing import Any

from farm.core.census import Census, census
from farm.core.model import Capacity, ClientType, LinkId, Namespace
from farm.stores.ports.registries import Registry
from tests.stores.pool import NS, A, at, hello, registered, request

LINK_2 = LinkId("link-2")


async def age(registry: Registry, now: float, **asks: Any) -> float | None:
    read = await registry.snapshot(now=at(now))
    return census(request(**asks), read).last_compatible_age_s


async def test_the_age_goes_from_never_to_nothing_grows_once_it_has_left_and_is_nothing_again(
    registry: Registry,
) -> None:
    assert await age(registry, 0) is None
    first = await registered(registry, hello(node="host-1"))
    assert await age(registry, 0) == 0
    await registry.heard(A, LinkId("link-1"), now=at(4))
    await registry.remove(A, epoch=first.epoch)
    assert await age(registry, 5) == 1
    assert await age(registry, 30) == 26
    assert await age(registry, 30, node="host-1") == 26
    assert await age(registry, 30, node="host-2") is None
    await registered(registry, hello("b", node="host-2"), now=at(31))
    assert await age(registry, 31) == 0
    assert await age(registry, 31, node="host-2") == 0
    assert await age(registry, 31, node="host-1") == 27


async def test_an_agent_that_has_lost_its_link_is_away_since_it_was_last_heard_of(
    registry: Registry,
) -> None:
    await registered(registry)
    await registry.heard(A, LinkId("link-1"), now=at(2))
    await registry.unlink(A, LinkId("link-1"), now=at(3))
    assert await age(registry, 12) == 10
    await registered(registry, hello(link="link-2"), now=at(13))
    assert await age(registry, 13) == 0


async def test_of_what_one_that_left_served_everything_but_its_name_is_remembered(
    registry: Registry,
) -> None:
    one = hello(
        task_queue="q",
        activity_types=frozenset({"w"}),
        metadata={"a": 1},
        namespaces=(NS, Namespace("two")),
    )
    known = await registered(registry, one)
    await registry.remove(A, epoch=known.epoch)
    fits = {"task_queue": "q", "activity_type": "w", "requirements": {"a": 1}}
    assert await age(registry, 7, **fits) == 7
    assert await age(registry, 7, **fits, namespace=Namespace("two")) == 7
    others: list[dict[str, Any]] = [
        {"task_queue": "default"},
        {"activity_type": "job"},
        {"requirements": {"a": 1.0}},
        {"client_type": ClientType.CONSOLE},
        {"namespace": Namespace("three")},
    ]
    for other in others:
        assert await age(registry, 7, **(fits | other)) is None


async def test_an_agent_that_comes_back_as_another_kind_has_left_its_pool(
    registry: Registry,
) -> None:
    await registered(registry, hello(task_queue="old"))
    await registered(registry, hello(task_queue="new", link=LINK_2), now=at(5))
    assert await age(registry, 6, task_queue="old") == 6
    assert await age(registry, 6, task_queue="new") == 0
    back = await registered(registry, hello(task_queue="old", link=LINK_2), now=at(8))
    assert await age(registry, 9, task_queue="old") == 0
    await registry.remove(A, epoch=back.epoch)
    assert await age(registry, 9, task_queue="old") == 1


async def test_who_left_is_no_agent_and_resurrects_with_no_slot(registry: Registry) -> None:
    known = await registered(registry)
    await registry.remove(A, epoch=known.epoch)
    read = await registry.snapshot(now=at(1))
    assert read.clients == ()
    assert census(request(), read) == Census(last_compatible_age_s=1)
    (gone,) = read.departed
    assert (gone.link, gone.capacity, gone.contexts) == (None, Capacity(), {})


async def test_of_more_kinds_than_are_kept_the_latest_are_remembered(
    registry: Registry,
) -> None:
    for number in range(1_100):
        known = await registered(registry, hello(node=f"host-{number}"), now=at(number))
        await registry.remove(A, epoch=known.epoch)
    read = await registry.snapshot(now=at(2_000))
    assert len(read.departed) == 1_000
    assert await age(registry, 2_000, node="host-99") is None
    assert await age(registry, 2_000, node="host-100") == 1_900
    assert await age(registry, 2_000, node="host-1099") == 901
