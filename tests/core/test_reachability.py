"""Who does not answer, and who is gone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.model import Capacity, Client, ClientId, ClientType, Instant, LinkId, Namespace
from farm.core.pools import Exclusion
from farm.core.reachability import (
    LOST_AFTER,
    Line,
    answered,
    asked,
    exclusion,
    is_gone,
    marked,
    round_s,
    union,
)

LOST, PROBATION = Exclusion.REACHABILITY_LOST, Exclusion.OPENING_PROBATION
A, B = ClientId("a"), ClientId("b")
PROVEN = Line(proven=True)
WINDOW_S = 10.0


def after(line: Line, number: int) -> Line:
    """An answer that is one."""
    found = answered(line, number)
    assert found is not None
    return found


def test_a_new_link_is_on_probation_until_its_first_answer() -> None:
    line = asked(Line(), 0)
    assert exclusion(Line(), 0) is PROBATION
    assert exclusion(line, 0) is PROBATION
    assert exclusion(after(line, 0), 0) is None


def test_three_questions_without_an_answer_are_a_loss_and_two_are_none() -> None:
    line = PROVEN
    for number in range(LOST_AFTER):
        assert exclusion(line, number) is None
        line = asked(line, number)
    # The last of them is not due before the next round.
    assert exclusion(line, LOST_AFTER - 1) is None
    assert exclusion(line, LOST_AFTER) is LOST


def test_who_ceases_to_answer_is_kept_out_within_one_window() -> None:
    # It has answered the question of round 0, and nothing after it.
    assert round_s(WINDOW_S) * (LOST_AFTER + 1) <= WINDOW_S


def test_one_who_never_answers_is_no_beginner_for_ever() -> None:
    line = Line()
    for number in range(LOST_AFTER):
        line = asked(line, number)
    assert exclusion(line, LOST_AFTER) is LOST


def test_a_round_in_which_it_could_not_be_asked_does_not_count() -> None:
    line = asked(asked(PROVEN, 0), 1)
    assert exclusion(line, 99) is None


def test_one_answer_restores_whatever_was_missed_before_it() -> None:
    line = PROVEN
    for number in range(50):
        line = asked(line, number)
    assert exclusion(line, 50) is LOST
    assert exclusion(after(asked(line, 50), 50), 50) is None


def test_an_answer_to_nothing_that_is_open_proves_nothing() -> None:
    assert answered(Line(), 0) is None
    line = asked(Line(), 3)
    assert answered(line, 2) is None
    assert answered(after(line, 3), 3) is None


@given(st.lists(st.sampled_from(["asked", "answered", "could not"]), max_size=40))
def test_it_is_lost_exactly_when_the_last_three_that_are_due_had_no_answer(
    rounds: list[str],
) -> None:
    line, missed = PROVEN, 0
    for number, what in enumerate(rounds):
        if what != "could not":
            line, missed = asked(line, number), missed + 1
        if what == "answered":
            line, missed = after(line, number), 0
        assert (exclusion(line, number + 1) is LOST) == (missed >= LOST_AFTER)
        assert len(line.asked) <= LOST_AFTER + 1


def test_what_coordinators_publish_is_united_and_a_loss_is_not_healed_by_another() -> None:
    assert union([]) == {}
    assert union([{A: LOST}, {A: PROBATION, B: PROBATION}]) == {A: LOST, B: PROBATION}
    assert union([{A: PROBATION}, {A: LOST}]) == {A: LOST}


def client(client_id: ClientId, **changes: object) -> Client:
    found = Client(
        client_id=client_id,
        client_type=ClientType.BROWSER,
        link=LinkId("l"),
        epoch=1,
        instance="i",
        namespaces=(Namespace("default"),),
        metadata={},
        capacity=Capacity(),
        seen_at=Instant(0.0),
    )
    return replace(found, **changes)  # type: ignore[arg-type]  # the test's own


def test_who_is_not_there_is_not_made_by_being_excluded() -> None:
    there = (client(A),)
    (found,) = marked(there, {A: LOST, B: LOST})
    assert (found.client_id, found.excluded) == (A, LOST)
    assert marked(there, {}) is there


@pytest.mark.parametrize(
    ("link", "silent_s", "gone"),
    [
        (None, 12.0, False),
        (None, 12.1, True),
        (LinkId("l"), 12.1, False),
        (LinkId("l"), 22.0, False),
        (LinkId("l"), 22.1, True),
    ],
)
def test_an_open_link_postpones_the_end_by_one_window_and_no_more(
    link: LinkId | None, silent_s: float, gone: bool
) -> None:
    one = client(A, link=link)
    assert is_gone(one, now=Instant(silent_s), after_s=12.0, window_s=WINDOW_S) is gone
