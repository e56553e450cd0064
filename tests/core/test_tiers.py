"""On which nodes a request is tried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core import decide
from farm.core.census import census
from farm.core.eligibility import Reason
from farm.core.model import Capacity, ClientId, Request, Snapshot
from farm.core.pools import Exclusion
from farm.core.tiers import (
    NodePlacement,
    Pinned,
    Prefer,
    Tier,
    Unplaced,
    at,
    is_within,
    tiers,
)
from tests.core.test_decide import client, requests, snapshot, snapshots
from tests.core.test_decide import request as asked

labels = st.frozensets(st.sampled_from(["n1", "n2", "n3"]))
placements = (
    st.just(Unplaced()) | st.builds(Prefer, labels=labels) | st.builds(Pinned, labels=labels)
)


@given(placements)
def test_what_a_request_names_goes_before_any_placement(placement: NodePlacement) -> None:
    assert tiers(asked(node="n9"), placement) == ("n9",)


def test_who_is_not_placed_is_tried_once_anywhere() -> None:
    assert tiers(asked(), Unplaced()) == (None,)


def test_who_prefers_nodes_tries_each_in_order_and_then_any() -> None:
    assert tiers(asked(), Prefer(labels=frozenset({"b", "a"}))) == ("a", "b", None)
    assert tiers(asked(), Prefer(labels=frozenset())) == (None,)


def test_who_is_pinned_never_tries_any_node_and_with_no_node_none_at_all() -> None:
    assert tiers(asked(), Pinned(labels=frozenset({"b", "a"}))) == ("a", "b")
    assert tiers(asked(), Pinned(labels=frozenset())) == ()


def test_with_nowhere_to_go_everybody_is_on_another_node() -> None:
    verdict = decide.explain(asked(), snapshot(client(node=None), client(node="n1")), walked=())
    assert set(verdict.clients.values()) == {Reason.OTHER_NODE}


@given(requests, snapshots, placements)
def test_over_tiers_everybody_is_told_of_once_and_as_the_tier_that_asked_said(
    request: Request, there: Snapshot, placement: NodePlacement
) -> None:
    walked = tiers(request, placement)
    verdict = decide.explain(request, there, walked=walked)
    assert verdict.clients.keys() == {one.client_id for one in there.clients}
    said = [decide.explain(at(request, tier), there) for tier in walked]
    for one in there.clients:
        each = {verdict.clients[one.client_id] for verdict in said}
        if said:
            assert verdict.clients[one.client_id] in each
        if is_within(one, walked):
            assert verdict.clients[one.client_id] is not Reason.OTHER_NODE


@pytest.mark.parametrize(
    ("walked", "lost", "in_probation", "compatible"),
    [
        (("n1",), 2, 0, 4),
        (("n1", "n2"), 2, 1, 5),
        (("n1", "n1"), 2, 0, 4),
        (("n1", None), 3, 1, 6),
        ((), 0, 0, 0),
    ],
)
def test_who_is_kept_out_is_counted_once_over_exactly_the_tiers_walked(
    walked: tuple[Tier, ...], lost: int, in_probation: int, compatible: int
) -> None:
    gone = Exclusion.REACHABILITY_LOST
    there = (
        client(client_id=ClientId("a"), node="n1", excluded=gone),
        client(client_id=ClientId("b"), node="n2", excluded=Exclusion.OPENING_PROBATION),
        client(client_id=ClientId("c"), node=None, excluded=gone),
        client(client_id=ClientId("d"), node="n1"),
        client(client_id=ClientId("e"), node="n1", excluded=gone, task_queue="crawl"),
        client(client_id=ClientId("f"), node="n1", draining=True),
        client(client_id=ClientId("g"), node="n1", excluded=gone, capacity=Capacity()),
    )
    found = census(asked(), snapshot(*there), walked)
    assert (found.reachability_lost, found.in_probation) == (lost, in_probation)
    assert (found.in_pool, found.compatible) == (6, compatible)
