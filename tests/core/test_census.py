"""What is counted of the agents that were there, and which verdict that makes."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from farm.core import decide, verdicts
from farm.core.census import (
    POOL_VERDICTS,
    Census,
    Declaration,
    Declared,
    PoolVerdict,
    census,
    classify,
)
from farm.core.eligibility import Reason
from farm.core.model import Capacity, Client, Instant, LinkId, Namespace, Request, Snapshot
from farm.core.pools import JOB, Exclusion
from tests.core.test_decide import NOW, WINDOW_S, client, request, requests, snapshot, snapshots

V = PoolVerdict
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SHAPES: list[tuple[dict[str, int], PoolVerdict]] = [
    ({}, V.NO_LIVE_POLLERS),
    ({"in_pool": 1}, V.POLLERS_INCOMPATIBLE),
    ({"in_pool": 2, "serving_activity": 1}, V.POLLERS_INCOMPATIBLE),
    ({"compatible": 1, "in_probation": 1}, V.POLLERS_IN_PROBATION),
    ({"compatible": 2, "in_probation": 1, "reachability_lost": 1}, V.POLLERS_IN_PROBATION),
    ({"compatible": 2, "reachability_lost": 2}, V.POLLERS_UNREACHABLE),
    ({"compatible": 2, "reachability_lost": 1, "draining": 1}, V.POLLERS_UNREACHABLE),
    ({"compatible": 2, "linked_elsewhere": 1, "draining": 1}, V.POLLERS_LINKED_ELSEWHERE),
    ({"compatible": 1, "draining": 1}, V.POLLERS_DRAINING),
    ({"compatible": 1, "eligible_compatible": 1, "at_capacity": 1}, V.POLLERS_AT_CAPACITY),
    (
        {"compatible": 1, "eligible_compatible": 1, "capacity_unannounced": 1},
        V.POLLERS_CAPACITY_UNANNOUNCED,
    ),
    (
        {"compatible": 2, "eligible_compatible": 2, "at_capacity": 1, "capacity_unannounced": 1},
        V.POLLERS_AT_CAPACITY,
    ),
    ({"compatible": 2, "eligible_compatible": 2, "at_capacity": 1}, V.SERVED_RACED),
    ({"compatible": 3, "eligible_compatible": 1, "reachability_lost": 2}, V.SERVED_RACED),
]


def counted(**counts: int) -> Census:
    """A census in which who is compatible is in the pool and does the work, too."""
    compatible = counts.get("compatible", 0)
    return Census(**{"in_pool": compatible, "serving_activity": compatible} | counts)


@pytest.mark.parametrize(("counts", "verdict"), SHAPES, ids=lambda v: str(v))
def test_each_shape_of_a_census_makes_one_verdict(
    counts: dict[str, int], verdict: PoolVerdict
) -> None:
    for declaration in (Declaration.UNCHECKED, Declaration.DECLARED):
        assert classify(declaration, counted(**counts)) is verdict
        assert not verdict.structural


@pytest.mark.parametrize("counts", [shape for shape, _ in SHAPES], ids=str)
def test_a_queue_nobody_declares_is_refused_whoever_is_in_the_pool(counts: dict[str, int]) -> None:
    verdict = classify(Declaration.UNDECLARED, counted(**counts))
    assert verdict is V.NO_QUEUE_DECLARATION
    assert verdict.structural


def test_only_a_catalogue_that_is_known_makes_anything_structural() -> None:
    found = [classify(d, counted(**shape)) for d, (shape, _) in product(Declaration, SHAPES)]
    assert {verdict for verdict in found if verdict.structural} == {V.NO_QUEUE_DECLARATION}
    known = {classify(Declaration.UNCHECKED, counted(**shape)) for shape, _ in SHAPES}
    assert V.NO_QUEUE_DECLARATION not in known


def test_saturated_is_never_read_off_a_census() -> None:
    assert V.SATURATED not in {verdict for _, verdict in SHAPES}
    assert V.SATURATED not in POOL_VERDICTS.values()


def test_a_full_pool_is_full_and_not_incompatible() -> None:
    full = client(capacity=Capacity(max_concurrency=1), opening_windows=1)
    verdict = decide.explain(request(), snapshot(full))
    assert verdict.census is not None
    assert (verdict.census.compatible, verdict.census.at_capacity) == (1, 1)
    assert verdict.pool is V.POLLERS_AT_CAPACITY
    assert verdict.reason is Reason.AT_CAPACITY


AGENTS: list[tuple[dict[str, Any], PoolVerdict, Reason | None]] = [
    ({"link": None}, V.NO_LIVE_POLLERS, Reason.ABSENT),
    ({"namespaces": (Namespace("b"),)}, V.NO_LIVE_POLLERS, Reason.OTHER_NAMESPACE),
    ({"metadata": {}}, V.POLLERS_INCOMPATIBLE, Reason.REQUIREMENTS_NOT_MET),
    ({"link": None, "metadata": {}}, V.NO_LIVE_POLLERS, None),
    ({"task_queue": "q"}, V.NO_LIVE_POLLERS, Reason.OTHER_QUEUE),
    ({"activity_types": frozenset({"w"})}, V.POLLERS_INCOMPATIBLE, Reason.ACTIVITY_NOT_SERVED),
    ({"node": "host-2"}, V.POLLERS_INCOMPATIBLE, Reason.OTHER_NODE),
    ({"node": None}, V.POLLERS_INCOMPATIBLE, Reason.OTHER_NODE),
    ({"excluded": Exclusion.OPENING_PROBATION}, V.POLLERS_IN_PROBATION, Reason.IN_PROBATION),
    ({"excluded": Exclusion.REACHABILITY_LOST}, V.POLLERS_UNREACHABLE, Reason.UNREACHABLE),
    ({"link": LinkId("two/1")}, V.POLLERS_LINKED_ELSEWHERE, Reason.LINKED_ELSEWHERE),
    ({"draining": True}, V.POLLERS_DRAINING, Reason.DRAINING),
    ({"draining": True, "opening_windows": 2}, V.POLLERS_DRAINING, Reason.DRAINING),
    ({"capacity": Capacity()}, V.POLLERS_CAPACITY_UNANNOUNCED, Reason.CAPACITY_UNANNOUNCED),
    ({"opening_windows": 2}, V.POLLERS_AT_CAPACITY, Reason.AT_CAPACITY),
    (
        {"capacity": Capacity(max_concurrency=3, max_windows=1), "opening_windows": 1},
        V.NO_WINDOW_FREE,
        Reason.NO_WINDOW_FREE,
    ),
    ({}, V.SERVED_RACED, Reason.LOST_RACE),
]


@pytest.mark.parametrize(("has", "pool", "reason"), AGENTS, ids=lambda v: str(v)[:40])
def test_what_an_agent_lacks_is_the_verdict_and_its_reason_alike(
    has: dict[str, Any], pool: PoolVerdict, reason: Reason | None
) -> None:
    asked = request(
        requirements={"a": 1},
        activity_type=JOB,
        node="host-1",
        through="one",
        auto_provision=True,
    )
    fits = {"metadata": {"a": 1}, "link": LinkId("one/1"), "node": "host-1"}
    there = client(**(fits | has))
    verdict = decide.explain(asked, snapshot(there))
    assert (verdict.pool, verdict.reason) == (pool, reason)
    assert verdict.remedy


def test_of_one_that_is_full_and_one_without_a_window_left_the_free_slot_counts() -> None:
    full = client(client_id="full", opening_windows=2)
    no_window = client(
        client_id="none", capacity=Capacity(max_concurrency=3, max_windows=1), opening_windows=1
    )
    verdict = decide.explain(request(auto_provision=True), snapshot(full, no_window))
    assert verdict.pool is V.NO_WINDOW_FREE
    assert "AGENT_MAX_WINDOWS" in verdict.remedy


def test_what_a_browser_lacks_has_a_verdict_for_every_reason_of_an_agent() -> None:
    assert set(POOL_VERDICTS) == set(verdicts._NEAREST)
    never = {V.SATURATED, V.NO_QUEUE_DECLARATION}
    from_reasons = set(POOL_VERDICTS.values())
    assert from_reasons <= set(V) - never


def test_of_agents_that_are_kept_out_those_in_probation_are_waited_for() -> None:
    new = client(client_id="new", excluded=Exclusion.OPENING_PROBATION)
    lost = client(client_id="lost", excluded=Exclusion.REACHABILITY_LOST)
    there: dict[PoolVerdict, list[tuple[Client, ...]]] = {
        V.POLLERS_IN_PROBATION: [(new,), (new, lost)],
        V.POLLERS_UNREACHABLE: [(lost,), (lost, client(client_id="d", draining=True))],
        V.SERVED_RACED: [(new, lost, client())],
    }
    for verdict, pools in there.items():
        for those in pools:
            assert decide.explain(request(auto_provision=True), snapshot(*those)).pool is verdict


def test_a_queue_that_is_not_declared_has_its_own_remedy() -> None:
    verdict = decide.explain(request(), snapshot(client()))
    undeclared = replace(verdict, queue=Declared(declaration=Declaration.UNDECLARED))
    assert undeclared.pool is V.NO_QUEUE_DECLARATION
    assert undeclared.remedy == "No such task queue is declared: correct its name."
    near = replace(undeclared, queue=replace(undeclared.queue, near="chrome"))
    assert near.remedy.endswith("did you mean chrome?")


@SLOW
@given(request=requests, snapshot=snapshots)
def test_counts_are_nested_and_what_is_told_apart_is_disjoint(
    request: Request, snapshot: Snapshot
) -> None:
    found = census(request, snapshot)
    assert (
        len(snapshot.clients)
        >= found.in_pool
        >= found.serving_activity
        >= found.compatible
        >= found.eligible_compatible
        >= found.at_capacity + found.capacity_unannounced
        >= 0
    )
    ineligible = (
        found.reachability_lost + found.in_probation + found.linked_elsewhere + found.draining
    )
    assert found.compatible == found.eligible_compatible + ineligible
    assert not found.compatible or found.last_compatible_age_s == 0


@SLOW
@given(request=requests, snapshot=snapshots)
def test_verdict_and_reasons_are_one_explanation(request: Request, snapshot: Snapshot) -> None:
    verdict = decide.explain(request, snapshot)
    pool, reason = verdict.pool, verdict.reason
    if reason is None:
        assert pool is V.NO_LIVE_POLLERS
    else:
        assert POOL_VERDICTS[reason] is pool
        assert reason in verdict.clients.values()


def test_the_age_is_that_of_the_latest_who_would_do_again() -> None:
    gone = client(client_id="gone", seen_at=Instant(NOW - 50), link=None)
    away = client(client_id="away", seen_at=Instant(NOW - WINDOW_S - 20), link=LinkId("l"))
    other = client(client_id="other", seen_at=NOW, namespaces=(Namespace("b"),), link=None)
    asked = request()

    def age(*departed: Any, there: Any = ()) -> float | None:
        read = replace(snapshot(*there), departed=departed)
        return census(asked, read).last_compatible_age_s

    assert age() is None
    assert age(other) is None
    assert age(gone) == 50
    assert age(gone, other, there=(away,)) == WINDOW_S + 20
    assert age(gone, there=(client(),)) == 0
    assert census(request(requirements={"a": 1}), replace(snapshot(), departed=(gone,))) == Census()


def test_over_several_nodes_each_that_is_kept_out_counts_once_and_only_where_it_was_asked() -> None:
    lost = {"excluded": Exclusion.REACHABILITY_LOST}
    there = snapshot(
        client(client_id="a", node="n1", **lost),
        client(client_id="b", node="n2", excluded=Exclusion.OPENING_PROBATION),
        client(client_id="c", node=None, **lost),
        client(client_id="d", node="n1"),
        client(client_id="e", node="n1", link=None, **lost),
        client(client_id="f", node="n1", task_queue="other", **lost),
    )

    def kept_out(*walked: str | None) -> int:
        found = census(request(), there, walked)
        return found.in_probation + found.reachability_lost

    assert kept_out("n1") == 1
    assert kept_out("n1", "n2") == 2
    assert kept_out("n1", None) == 3
    assert kept_out("n1", "n1") == 1
    assert kept_out() == 0
