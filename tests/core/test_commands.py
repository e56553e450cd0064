"""What is known of a command, and what follows from it."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.commands import (
    AFTER,
    Answer,
    ClientDelivery,
    CommandEvidence,
    CommandState,
    Declared,
    Effect,
    Mark,
    Payload,
    answers,
    before,
    deliveries,
    kept,
    marked,
)
from farm.core.model import ClientId, Instant, Namespace

S = CommandState
Said = tuple[Answer, Answer, Answer]
YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


def admitted(effect: Effect | None = None, reconcilable: bool | None = None) -> CommandEvidence:
    return CommandEvidence(
        command_id="c",
        namespace=Namespace("n"),
        client_id=ClientId("a"),
        kind="run",
        admitted_at=Instant(0.0),
        declared=Declared(effect=effect, reconcilable=reconcilable),
    )


def after(
    known: CommandEvidence, *states: CommandState, reason: str | None = None
) -> CommandEvidence:
    for n, state in enumerate(states, 1):
        further = marked(known, Mark(state=state, at=Instant(n), reason=reason))
        assert further is not None
        known = further
    return known


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ((), (NO, NO, NO)),
        ((S.WITHDRAWN,), (NO, NO, YES)),
        ((S.SEND_ATTEMPTED,), (YES, NO, NO)),
        ((S.SEND_ATTEMPTED, S.ERROR), (YES, NO, YES)),
        ((S.SEND_ATTEMPTED, S.ACKNOWLEDGED), (YES, YES, NO)),
        ((S.SEND_ATTEMPTED, S.REFUSED), (YES, YES, YES)),
        ((S.SEND_ATTEMPTED, S.RESULT), (YES, YES, YES)),
        ((S.SEND_ATTEMPTED, S.ACKNOWLEDGED, S.RESULT), (YES, YES, YES)),
        ((S.SEND_ATTEMPTED, S.ACKNOWLEDGED, S.ERROR), (YES, YES, YES)),
    ],
)
def test_the_first_three_answers_come_from_the_evidence(
    states: tuple[CommandState, ...], said: Said
) -> None:
    found = answers(after(admitted(), *states))
    assert (found.send_attempted, found.acknowledged, found.result_retained) == said


@pytest.mark.parametrize(("state", "then"), list(product(S, S)))
def test_a_state_follows_where_the_table_says_and_else_changes_nothing(
    state: CommandState, then: CommandState
) -> None:
    known = marked_to(state)
    assert (marked(known, Mark(state=then, at=Instant(9.0))) is not None) is (then in AFTER[state])
    assert (state in before(then)) is (then in AFTER[state])


def marked_to(state: CommandState) -> CommandEvidence:
    ways = {S.ADMITTED: (), S.SEND_ATTEMPTED: (S.SEND_ATTEMPTED,), S.WITHDRAWN: (S.WITHDRAWN,)}
    known = after(admitted(), *ways.get(state, (S.SEND_ATTEMPTED, state)))
    assert known.state is state
    return known


def test_what_may_have_been_sent_is_never_called_withdrawn() -> None:
    attempted = after(admitted(), S.SEND_ATTEMPTED)
    assert marked(attempted, Mark(state=S.WITHDRAWN, at=Instant(2.0))) is None
    withdrawn = after(admitted(), S.WITHDRAWN)
    assert marked(withdrawn, Mark(state=S.SEND_ATTEMPTED, at=Instant(2.0))) is None


@pytest.mark.parametrize(("declared", "said"), [(None, UNKNOWN), (True, YES), (False, NO)], ids=str)
def test_the_fourth_answer_is_what_was_declared(declared: bool | None, said: Answer) -> None:
    assert answers(admitted(reconcilable=declared)).effect_can_be_established is said


@pytest.mark.parametrize(
    ("effect", "said"),
    [(None, UNKNOWN), (Effect.NONE, YES), (Effect.IDEMPOTENT, YES), (Effect.ONCE, NO)],
    ids=str,
)
@pytest.mark.parametrize("state", [S.SEND_ATTEMPTED, S.ACKNOWLEDGED, S.RESULT, S.ERROR])
def test_the_fifth_answer_is_by_the_effect_once_a_send_was_attempted(
    effect: Effect | None, said: Answer, state: CommandState
) -> None:
    known = after(admitted(effect), *dict.fromkeys((S.SEND_ATTEMPTED, state)))
    assert answers(known).repeat_is_safe is said


@pytest.mark.parametrize(
    ("states", "reason", "said"),
    [
        ((), None, NO),
        ((S.WITHDRAWN,), None, YES),
        ((S.SEND_ATTEMPTED, S.REFUSED), "busy", YES),
        ((S.SEND_ATTEMPTED, S.REFUSED), "stale", YES),
        # Said of a run that is long over, too.
        ((S.SEND_ATTEMPTED, S.REFUSED), "unknown_context", NO),
        ((S.SEND_ATTEMPTED, S.ACKNOWLEDGED, S.REFUSED), "busy", NO),
    ],
)
def test_what_must_happen_once_may_be_repeated_only_if_it_never_began(
    states: tuple[CommandState, ...], reason: str | None, said: Answer
) -> None:
    known = after(admitted(Effect.ONCE), *states, reason=reason)
    assert answers(known).repeat_is_safe is said


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_payload_is_retained_whole_or_named_as_cut(text: str, limit: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return
    found = kept(text, limit)
    assert found == Payload(text=text if size <= limit else None, size=size)


def test_what_is_under_way_is_counted_by_agent_and_its_oldest_named() -> None:
    b = ClientId("b")
    sent = after(admitted(), S.SEND_ATTEMPTED)
    known = [
        replace(sent, admitted_at=Instant(7.0)),
        replace(sent, admitted_at=Instant(8.0)),
        replace(after(sent, S.ACKNOWLEDGED), admitted_at=Instant(5.0)),
        replace(admitted(), admitted_at=Instant(6.0)),
        replace(admitted(), client_id=b),
    ]
    assert deliveries(known, failed_since=Instant(0.0)) == {
        "a": ClientDelivery(admitted=1, in_flight=3, unacknowledged=2, oldest_at=Instant(5.0)),
        b: ClientDelivery(admitted=1, oldest_at=Instant(0.0)),
    }


def test_what_failed_lately_is_counted_by_reason_and_a_result_is_no_failure() -> None:
    sent = after(admitted(), S.SEND_ATTEMPTED)

    def ended(state: CommandState, at: float, reason: str | None = None) -> CommandEvidence:
        found = marked(sent, Mark(state=state, at=Instant(at), reason=reason))
        assert found is not None
        return found

    known = [
        ended(S.REFUSED, 2.9, "busy"),
        ended(S.REFUSED, 3.0, "busy"),
        ended(S.ERROR, 4.0, "busy"),
        ended(S.ERROR, 4.0),
        ended(S.RESULT, 4.0),
    ]
    failures = {"busy": 2, "error": 1}
    found = deliveries(known, failed_since=Instant(3.0))
    assert found == {"a": ClientDelivery(failures=failures)}
