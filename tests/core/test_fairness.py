"""Whose job is next."""

from collections import Counter
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from farm.core.fairness import in_turns, order_of_turns, share_of
from farm.core.model import Namespace

NAMES = st.sampled_from([Namespace(name) for name in "abcd"])
BACKLOGS = st.dictionaries(NAMES, st.integers(1, 12), min_size=1)


def started(backlogs: dict[Namespace, int], limit: int) -> list[Namespace]:
    """Start everything, so many at a time, as the queue does: whose they are, in order."""
    left, turns, numbers = dict(backlogs), dict[Namespace, int](), count(1)
    begun: list[Namespace] = []
    while left:
        order = order_of_turns(dict.fromkeys(left, 1), turns)[:limit]
        share = share_of(len(order), limit)
        batch = in_turns([[name] * min(share, left[name]) for name in order], limit)
        assert batch
        for name in batch:
            begun.append(name)
            turns[name] = next(numbers)
            left[name] -= 1
        left = {name: n for name, n in left.items() if n}
    return begun


@given(BACKLOGS, st.integers(1, 5))
def test_between_two_starts_of_one_namespace_no_other_that_has_work_has_more_than_one(
    backlogs: dict[Namespace, int], limit: int
) -> None:
    begun = started(backlogs, limit)
    assert Counter(begun) == backlogs
    for name in backlogs:
        places = [place for place, one in enumerate(begun) if one == name]
        for place, following in pairwise(places):
            between = Counter(begun[place + 1 : following])
            assert max(between.values(), default=0) <= 1


@given(BACKLOGS, st.integers(1, 5))
def test_nobody_waits_longer_for_the_first_turn_than_one_turn_of_each_other(
    backlogs: dict[Namespace, int], limit: int
) -> None:
    begun = started(backlogs, limit)
    for name in backlogs:
        before = Counter(begun[: begun.index(name)])
        assert max(before.values(), default=0) <= 1


def test_who_has_waited_longer_is_first_where_neither_has_had_a_turn() -> None:
    a, b, c = (Namespace(name) for name in "abc")
    assert order_of_turns({a: 3, b: 1, c: 2}, {b: 1}) == [c, a, b]


def test_who_is_being_served_is_last_in_the_order_of_the_latest_turns() -> None:
    a, b, c = (Namespace(name) for name in "abc")
    assert order_of_turns({a: 1, b: 2, c: 3}, {c: 9}, served=(a, b, a)) == [c, b, a]


def test_each_line_gives_one_before_any_gives_its_second() -> None:
    assert in_turns([["a1", "a2", "a3"], ["b1"], ["c1", "c2"]], 5) == ["a1", "b1", "c1", "a2", "c2"]


@given(st.integers(0, 9), st.integers(1, 9))
def test_shares_are_enough_and_none_is_larger_than_need_be(namespaces: int, at_most: int) -> None:
    share = share_of(namespaces, at_most)
    assert share * max(1, namespaces) >= at_most
    assert (share - 1) * max(1, namespaces) < at_most
