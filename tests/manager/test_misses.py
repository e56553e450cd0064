"""Why the last acquisitions of a namespace came to nothing, and no more than that."""

from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.model import ClientId, ContextId, Namespace, TaskId
from farm.manager.misses import Misses
from tests.manager.floor import NS, Floor
from tests.stores.pool import T0, request


async def test_a_namespace_is_told_why_and_another_hears_nothing_of_it(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await manager.acquire(NS, "first")
    assert handle is not None
    for _ in range(2):
        assert await manager.acquire(NS, "second") is None
    assert await manager.acquire("other", "third") is None
    (miss,) = manager.misses(NS)
    assert (miss.task_id, miss.times, miss.at) == ("second", 2, floor.now)
    assert miss.reason is Reason.CREATION_NOT_PERMITTED
    assert miss.remedy
    assert miss.contexts == {("a", "W1.a"): Reason.ASSIGNED}
    (other,) = manager.misses("other")
    assert other.reason is Reason.OTHER_NAMESPACE
    assert other.contexts == {}


async def test_a_task_that_has_what_it_asked_for_is_no_miss_any_more(floor: Floor) -> None:
    manager = floor.manager()
    assert await manager.acquire(NS, "t") is None
    assert len(manager.misses(NS)) == 1
    await floor.agent("a", "W1.a")
    assert await manager.acquire(NS, "t") is not None
    assert manager.misses(NS) == ()


def test_what_is_remembered_is_bounded_in_every_direction() -> None:
    misses = Misses(per_namespace=3, namespaces=2)
    verdict = Verdict(
        clients={ClientId(f"c{n}"): Reason.ABSENT for n in range(1_000)},
        contexts={(ClientId("c"), ContextId(f"x{n}")): Reason.ASSIGNED for n in range(1_000)},
    )
    for n in range(5):
        misses.note(request(f"t{n}"), verdict, T0)
    for name in ("two", "three"):
        misses.note(request("t", namespace=Namespace(name)), verdict, T0)
    assert misses.of(NS) == ()
    for n in range(5):
        misses.note(request(f"t{n}"), verdict, T0)
    found = misses.of(NS)
    assert [miss.task_id for miss in found] == ["t4", "t3", "t2"]
    assert found[0].counts == {Reason.ABSENT: 1_000}
    assert len(found[0].clients) == len(found[0].contexts) == 100
    misses.forget(request("t4"))
    misses.forget(request("never"))
    assert TaskId("t4") not in [miss.task_id for miss in misses.of(NS)]
