"""On which nodes a request is tried."""

from hypothesis import given
from hypothesis import strategies as st

from farm.core import decide
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
    excluded_over,
    explain_over,
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
    verdict = explain_over(asked(), (), snapshot(client(node=None), client(node="n1")))
    assert set(verdict.clients.values()) == {Reason.OTHER_NODE}


@given(requests, snapshots, placements)
def test_over_tiers_everybody_is_told_of_once_and_as_the_tier_that_asked_said(
    request: Request, there: Snapshot, placement: NodePlacement
) -> None:
    walked = tiers(request, placement)
    verdict = explain_over(request, walked, there)
    assert verdict.clients.keys() == {one.client_id for one in there.clients}
    said = [decide.explain(at(request, tier), there) for tier in walked]
    for one in there.clients:
        each = {verdict.clients[one.client_id] for verdict in said}
        if said:
            assert verdict.clients[one.client_id] in each
        if is_within(one, walked):
            assert verdict.clients[one.client_id] is not Reason.OTHER_NODE


def excluded(walked: tuple[Tier, ...]) -> list[str]:
    lost = Exclusion.REACHABILITY_LOST
    there = (
        client(client_id=ClientId("a"), node="n1", excluded=lost),
        client(client_id=ClientId("b"), node="n2", excluded=Exclusion.OPENING_PROBATION),
        client(client_id=ClientId("c"), node=None, excluded=lost),
        client(client_id=ClientId("d"), node="n1"),
        client(client_id=ClientId("e"), node="n1", excluded=lost, task_queue="crawl"),
        client(client_id=ClientId("f"), node="n1", excluded=lost, draining=True),
        client(client_id=ClientId("g"), node="n1", excluded=lost, capacity=Capacity()),
    )
    return [one.client_id for one in excluded_over(asked(), walked, snapshot(*there))]


def test_who_is_kept_out_is_counted_once_over_exactly_the_tiers_walked() -> None:
    assert excluded(("n1",)) == ["a", "g"]
    assert excluded(("n1", "n2")) == ["a", "b", "g"]
    assert excluded(("n1", "n1")) == ["a", "g"]
    assert excluded(("n1", None)) == ["a", "b", "c", "g"]
    assert excluded(()) == []
