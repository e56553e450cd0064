"""Work of a namespace goes to the nodes where it is placed."""

from typing import Any

import pytest

from farm.core.eligibility import Reason
from farm.core.model import Capacity, ClientId, Namespace
from farm.core.tiers import NodePlacement, Pinned, Prefer, Unplaced
from farm.errors import StoreUnavailableError
from farm.manager import Acquired, NotAcquired, WorkerContextManager
from farm.manager.kept import KEPT_S
from tests.manager.floor import NS, Floor

ONE_SLOT = Capacity(max_concurrency=1, max_windows=1)


class Placed:
    """Says where every namespace is placed, or that it can't be read."""

    def __init__(self, placement: NodePlacement | None = None) -> None:
        self.says = placement
        self.readings = 0

    async def placement(self, namespace: Namespace) -> NodePlacement:
        self.readings += 1
        if self.says is None:
            raise StoreUnavailableError("the ledger is away")
        return self.says


def pinned(*labels: str) -> Placed:
    return Placed(Pinned(labels=frozenset(labels)))


def prefers(*labels: str) -> Placed:
    return Placed(Prefer(labels=frozenset(labels)))


async def on(manager: WorkerContextManager, task: str, **asked: Any) -> str:
    """Acquire; return on whom, or why on nobody."""
    outcome = await manager.try_acquire(NS, task, **asked)
    if isinstance(outcome, Acquired):
        return outcome.handle.assignment.client_id
    reason = outcome.verdict.reason
    return "nobody" if reason is None else reason.value


@pytest.mark.parametrize("create", [False, True])
async def test_the_pinned_never_spill_though_others_are_idle(floor: Floor, create: bool) -> None:
    await floor.agent("a", "W1.a", node="n1", capacity=ONE_SLOT)
    await floor.agent("b", "W2.a", node="n2")
    await floor.agent("c", "W3.a")
    manager = floor.manager(placements=pinned("n1", "n3"))
    assert await on(manager, "t1", auto_provision=create) == "a"
    assert await on(manager, "t2", auto_provision=create) == Reason.AT_CAPACITY
    verdict = (await missed(manager, auto_provision=create)).verdict
    assert verdict.clients == {
        "a": Reason.AT_CAPACITY,
        "b": Reason.OTHER_NODE,
        "c": Reason.OTHER_NODE,
    }


async def missed(manager: WorkerContextManager, **asked: Any) -> NotAcquired:
    outcome = await manager.try_acquire(NS, "missed", **asked)
    assert isinstance(outcome, NotAcquired)
    return outcome


async def test_pinned_to_no_node_nothing_runs_until_that_is_relaxed(floor: Floor) -> None:
    await floor.agent("a", "W1.a", node="n1")
    await floor.agent("b", "W2.a")
    placed = pinned()
    manager = floor.manager(placements=placed)
    assert await on(manager, "t", auto_provision=True) == Reason.OTHER_NODE
    placed.says = Unplaced()
    floor.passes(KEPT_S)
    assert await on(manager, "t") == "a"


async def test_a_placement_that_is_said_to_have_changed_counts_at_once(floor: Floor) -> None:
    await floor.agent("a", "W1.a", node="n1")
    await floor.agent("b", "W2.a", "W3.a", node="n2")
    placed = pinned("n1")
    manager = floor.manager(placements=placed)
    assert await on(manager, "t1") == "a"
    placed.says = Pinned(labels=frozenset({"n2"}))
    manager.placement_changed(NS)
    assert await on(manager, "t2") == "b"
    placed.says = None
    manager.placement_changed(NS)  # and can't be read: it stays what it was
    assert await on(manager, "t3") == "b"


@pytest.mark.parametrize("create", [False, True])
async def test_a_node_that_is_preferred_comes_first_and_spills_when_absent_or_full(
    floor: Floor, create: bool
) -> None:
    await floor.agent("a", "W1.a", node="n1")
    manager = floor.manager(placements=prefers("n2"))
    assert await on(manager, "absent", auto_provision=create) == "a"
    await floor.agent("a2", "W1.a", node="n1")
    await floor.agent("z", "W2.a", node="n2", capacity=ONE_SLOT)
    assert await on(manager, "t1", auto_provision=create) == "z"
    assert await on(manager, "full", auto_provision=create) == "a2"


async def test_a_window_is_opened_on_a_preferred_node_before_another_is_turned_to(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", node="n1")
    await floor.agent("z", node="n2")
    manager = floor.manager(placements=prefers("n2"))
    assert await on(manager, "t1", auto_provision=True) == "z"
    assert await on(manager, "t2") == "a"


async def test_what_a_request_names_goes_before_the_placement_which_is_not_even_read(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", "W3.a", node="n1")
    await floor.agent("b", "W2.a", node="n2")
    placed = pinned("n1")
    manager = floor.manager(placements=placed)
    assert await on(manager, "t1", node="n2") == "b"
    placed.says = None
    assert await on(manager, "t2", node="n1") == "a"
    assert placed.readings == 0


async def test_a_placement_that_cant_be_read_stays_what_it_was_and_is_never_taken_for_open(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", "W3.a", node="n1")
    await floor.agent("b", "W2.a", node="n2")
    await floor.agent("c", "W4.a", node="n2", task_queue="crawl")
    placed = Placed()
    manager = floor.manager(placements=placed)
    assert await on(manager, "t1") == Reason.PLACEMENT_UNKNOWN
    verdict = (await missed(manager)).verdict
    unknown = dict.fromkeys("ab", Reason.PLACEMENT_UNKNOWN)
    assert verdict.clients == {**unknown, "c": Reason.OTHER_QUEUE}
    assert verdict.somebody
    placed.says = Pinned(labels=frozenset({"n2"}))
    assert await on(manager, "t1") == "b"
    placed.says = None
    floor.passes(2 * KEPT_S)
    for name in ("a", "b"):
        link = (await floor.client(name)).link
        assert link is not None
        assert await floor.registry.heard(ClientId(name), link, now=floor.now)
    clients = (await missed(manager)).verdict.clients
    assert clients == {
        "a": Reason.OTHER_NODE,
        "b": Reason.CREATION_NOT_PERMITTED,
        "c": Reason.OTHER_QUEUE,
    }
