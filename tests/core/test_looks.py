"""What is found of a client is found once, and is what a look of its own would have found."""

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from farm.core import decide
from farm.core.census import census
from farm.core.eligibility import CLIENT_CHECKS, canonical, is_same, reject_client
from farm.core.looks import Looks
from farm.core.model import ClientId, Request, Snapshot, Window, WindowId
from farm.core.tiers import NodePlacement, at, is_within, tiers
from tests.core.test_decide import (
    NOW,
    WINDOW_S,
    client,
    json_values,
    request,
    requests,
    snapshot,
    snapshots,
)
from tests.core.test_tiers import placements

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(requests, snapshots, placements, st.integers(0, 3))
def test_looks_that_are_shared_find_what_looks_of_their_own_find(
    asked: Request, there: Snapshot, placement: NodePlacement, before: int
) -> None:
    walked = tiers(asked, placement)
    shared = Looks(asked, there)
    shared.further(before)
    for tier in walked:
        tried = at(asked, tier)
        assert list(decide.each_candidate(tried, shared)) == list(
            decide.each_candidate(tried, there)
        )
        assert decide.sites(tried, shared) == decide.sites(tried, there)
    assert census(asked, shared, walked) == census(asked, there, walked)
    said = decide.explain(asked, shared, walked=walked)
    assert said == decide.explain(asked, there, walked=walked)


@SLOW
@given(requests, snapshots, placements)
def test_what_is_found_of_a_client_is_what_the_checks_say_one_by_one(
    asked: Request, there: Snapshot, placement: NodePlacement
) -> None:
    walked = tiers(asked, placement)
    for one, found in Looks(asked, there).each(walked):
        of = at(asked, None if is_within(one, walked) else "nowhere")
        first = reject_client(of, one, now=NOW, window_s=WINDOW_S)
        assert (found[0] if found else None) is first
        if of.namespace in one.namespaces:
            said = (check(of, one, NOW, WINDOW_S) for check in CLIENT_CHECKS)
            assert found == tuple(reason for reason in said if reason is not None)


class Counted(dict[str, Any]):
    """Metadata that counts how often it is asked whether it has a key."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def counted(number: int) -> tuple[Snapshot, list[Counted]]:
    facts = [Counted(a=n) for n in range(number)]
    there = [client(client_id=ClientId(f"c{n}"), metadata=fact) for n, fact in enumerate(facts)]
    return snapshot(*there), facts


def test_nobody_is_looked_at_twice_for_one_miss() -> None:
    there, facts = counted(3)
    asked = request(requirements={"a": 9}, auto_provision=True)
    looks = Looks(asked, there)
    assert not list(decide.each_candidate(asked, looks))
    assert not decide.sites(asked, looks)
    assert decide.explain(asked, looks).census is not None
    assert [fact.asked for fact in facts] == [1, 1, 1]


def test_to_find_the_first_who_will_do_the_others_are_not_looked_at() -> None:
    there, facts = counted(3)
    asked = request(requirements={"a": 1})
    assert next(Looks(asked, there).fitting(None)).client_id == "c1"
    assert [fact.asked for fact in facts] == [1, 1, 0]


def test_an_identity_is_open_where_a_window_of_it_is_or_is_being_opened() -> None:
    window = Window(window_id=WindowId("W"), identity="shop")
    has, opens = client(windows={window.window_id: window}), client(opening_identities={"shop": 1})
    for there, open_ in ((has, True), (opens, True), (client(), False)):
        assert Looks(request(identity="shop"), snapshot(there)).identity_is_open() is open_
    assert not Looks(request(identity="other"), snapshot(has, opens)).identity_is_open()
    assert not Looks(
        request(), snapshot(client(windows={WindowId("W"): window}))
    ).identity_is_open()


@given(json_values, json_values)
@example(1, True)
@example(1, 1.0)
@example("1", 1)
@example(0.0, -0.0)
@example(None, False)
@example({"a": 1}, {"a": 1.0})
def test_json_values_are_the_same_where_their_canonical_texts_are(one: Any, other: Any) -> None:
    assert is_same(one, other) == (canonical(one) == canonical(other))
    assert is_same(one, one)
