"""No effect twice (P12), no attempt counted that never began (P13)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.job_states import AttemptState, JobState
from farm.core.retry import Budget, Doubt, EffectMark, Ending, after, bar, delay_s

endings = st.builds(
    Ending,
    state=st.sampled_from([s for s in AttemptState if s is not AttemptState.RUNNING]),
    transient=st.booleans(),
    began=st.booleans(),
    cancel_requested=st.booleans(),
    falls_back=st.booleans(),
)
marks = st.lists(st.builds(EffectMark, once=st.booleans(), done=st.booleans()), max_size=4)
budgets = st.builds(
    Budget,
    attempts=st.integers(0, 10),
    max_attempts=st.integers(1, 10),
    free_losses=st.integers(0, 6),
    max_free_losses=st.integers(0, 5),
)
doubts = st.sampled_from(Doubt)


@given(endings, marks, budgets, doubts)
def test_an_effect_is_repeated_only_where_it_is_known_absent_or_its_doubt_is_allowed(
    ending: Ending, effects: list[EffectMark], budget: Budget, doubt: Doubt
) -> None:
    state = after(ending, effects, budget, doubt).state
    once = [mark for mark in effects if mark.once]
    if state is JobState.QUEUED:
        assert not any(mark.done for mark in once)
        assert not once or doubt is Doubt.RETRY


@given(endings, marks, budgets, doubts)
def test_what_the_farm_would_not_try_again_for_its_effects_nobody_may(
    ending: Ending, effects: list[EffectMark], budget: Budget, doubt: Doubt
) -> None:
    if after(ending, effects, budget, doubt).state is JobState.QUEUED:
        assert bar(effects, doubt) is None
    if any(mark.once and mark.done for mark in effects):
        assert bar(effects, doubt) is not None


@given(endings, marks, budgets, doubts)
def test_no_more_attempts_count_than_are_allowed(
    ending: Ending, effects: list[EffectMark], budget: Budget, doubt: Doubt
) -> None:
    following = after(ending, effects, budget, doubt)
    if following.state is JobState.QUEUED and following.counts:
        assert budget.attempts + 1 < budget.max_attempts
    if following.falls_back:
        assert ending.falls_back
        assert following.state is JobState.QUEUED
        assert not following.counts
    elif not following.counts:
        assert following.state is JobState.QUEUED
        assert budget.free_losses < budget.max_free_losses
        assert ending.state is AttemptState.LOST
        assert not ending.began


@given(endings, marks, budgets, doubts)
def test_what_is_to_be_cancelled_or_has_no_time_left_is_not_tried_again(
    ending: Ending, effects: list[EffectMark], budget: Budget, doubt: Doubt
) -> None:
    state = after(ending, effects, budget, doubt).state
    if ending.cancel_requested or ending.state in (AttemptState.CANCELLED, AttemptState.TIMED_OUT):
        assert state is not JobState.QUEUED
    assert (state is JobState.SUCCEEDED) == (ending.state is AttemptState.SUCCEEDED)


@given(endings, marks, budgets)
def test_doubt_is_held_unless_the_job_says_otherwise(
    ending: Ending, effects: list[EffectMark], budget: Budget
) -> None:
    state = after(ending, effects, budget, Doubt.HOLD).state
    begun = any(mark.once and not mark.done for mark in effects)
    unclear = begun and ending.state is not AttemptState.SUCCEEDED
    assert (state is JobState.UNCERTAIN) == unclear


LOST = Ending(state=AttemptState.LOST, transient=True, began=True)
FAILED = Ending(state=AttemptState.FAILED, transient=True, began=True)
TIMED_OUT = Ending(state=AttemptState.TIMED_OUT, transient=False, began=True)
TWO = Budget(attempts=0, max_attempts=2, free_losses=0, max_free_losses=5)
BEGUN, DONE = EffectMark(once=True, done=False), EffectMark(once=True, done=True)
AGAIN = EffectMark(once=False, done=False)

CASES = [
    (LOST, [], TWO, Doubt.HOLD, JobState.QUEUED, "retry"),
    (LOST, [BEGUN], TWO, Doubt.HOLD, JobState.UNCERTAIN, "effect_uncertain"),
    (LOST, [BEGUN], TWO, Doubt.FAIL, JobState.FAILED, "effect_uncertain"),
    (LOST, [BEGUN], TWO, Doubt.RETRY, JobState.QUEUED, "retry"),
    (LOST, [DONE, BEGUN], TWO, Doubt.RETRY, JobState.FAILED, "effect_would_repeat"),
    (FAILED, [DONE], TWO, Doubt.RETRY, JobState.FAILED, "effect_would_repeat"),
    (FAILED, [AGAIN], TWO, Doubt.HOLD, JobState.QUEUED, "retry"),
    (TIMED_OUT, [BEGUN], TWO, Doubt.RETRY, JobState.TIMED_OUT, "timed_out"),
    (TIMED_OUT, [BEGUN], TWO, Doubt.HOLD, JobState.UNCERTAIN, "effect_uncertain"),
]


@pytest.mark.parametrize(("ending", "effects", "budget", "doubt", "state", "why"), CASES)
def test_the_table_of_what_follows(
    ending: Ending,
    effects: list[EffectMark],
    budget: Budget,
    doubt: Doubt,
    state: JobState,
    why: str,
) -> None:
    following = after(ending, effects, budget, doubt)
    assert (following.state, following.why) == (state, why)


def test_a_loss_before_the_beginning_is_free_until_there_have_been_too_many() -> None:
    ending = Ending(state=AttemptState.LOST, transient=True, began=False)
    counts, states = [], []
    for losses in range(4):
        budget = Budget(attempts=0, max_attempts=1, free_losses=losses, max_free_losses=3)
        following = after(ending, [], budget, Doubt.HOLD)
        counts.append(following.counts)
        states.append(following.state)
    assert counts == [False, False, False, True]
    assert states == [JobState.QUEUED] * 3 + [JobState.FAILED]


def test_a_job_is_tried_as_often_as_it_may_and_no_more() -> None:
    budgets = [replace(TWO, attempts=attempts) for attempts in range(3)]
    assert [after(FAILED, [], budget, Doubt.HOLD).why for budget in budgets] == [
        "retry",
        "attempts_exhausted",
        "attempts_exhausted",
    ]


@given(st.text(max_size=8), st.integers(1, 200))
def test_the_wait_grows_is_bounded_and_is_the_same_each_time(job_id: str, tries: int) -> None:
    wait = delay_s(job_id, tries, initial_s=1.0, max_s=60.0)
    full = min(60.0, 2.0 ** (tries - 1))
    assert full / 2 <= wait <= full
    assert wait == delay_s(job_id, tries, initial_s=1.0, max_s=60.0)
