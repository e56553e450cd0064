import itertools

import pytest

from farm.core.job_states import (
    AT_REST,
    JOB,
    TERMINAL,
    IllegalTransitionError,
    JobEvent,
    JobState,
    step,
)

S, E = JobState, JobEvent

MOVES = {
    (S.QUEUED, E.START): S.RUNNING,
    (S.QUEUED, E.CANCEL): S.CANCELLED,
    (S.RUNNING, E.SUCCEED): S.SUCCEEDED,
    (S.RUNNING, E.FAIL): S.FAILED,
    (S.RUNNING, E.RETRY): S.QUEUED,
    (S.RUNNING, E.TIME_OUT): S.TIMED_OUT,
    (S.RUNNING, E.CANCEL): S.CANCELLING,
    (S.RUNNING, E.DOUBT): S.UNCERTAIN,
    (S.CANCELLING, E.SUCCEED): S.SUCCEEDED,
    (S.CANCELLING, E.FAIL): S.FAILED,
    (S.CANCELLING, E.STOPPED): S.CANCELLED,
    (S.CANCELLING, E.CANCEL): S.CANCELLING,
    (S.CANCELLING, E.DOUBT): S.UNCERTAIN,
    (S.UNCERTAIN, E.RETRY): S.QUEUED,
    (S.UNCERTAIN, E.RESOLVE_SUCCEEDED): S.SUCCEEDED,
    (S.UNCERTAIN, E.RESOLVE_FAILED): S.FAILED,
    (S.FAILED, E.AGAIN): S.QUEUED,
    (S.CANCELLED, E.AGAIN): S.QUEUED,
    (S.TIMED_OUT, E.AGAIN): S.QUEUED,
}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(JobState, JobEvent)))
def test_each_event_in_each_state_moves_the_job_or_is_refused(
    state: JobState, event: JobEvent
) -> None:
    if (state, event) in MOVES:
        assert step(state, event) is MOVES[state, event]
        return
    with pytest.raises(IllegalTransitionError, match=f"cannot {event} while {state}") as refused:
        step(state, event)
    assert (refused.value.state, refused.value.event) == (state, event)


def test_the_table_names_every_state() -> None:
    assert set(JOB) == set(JobState)


def test_only_a_persons_wish_leads_out_of_a_terminal_state() -> None:
    assert {S.SUCCEEDED, S.FAILED, S.CANCELLED, S.TIMED_OUT} == TERMINAL
    assert {event for state in TERMINAL for event in JOB[state]} == {E.AGAIN}
    assert {S.UNCERTAIN} == AT_REST - TERMINAL


def test_every_state_can_be_reached_from_the_queue() -> None:
    reached = {S.QUEUED}
    while more := {to for state in reached for to in JOB[state].values()} - reached:
        reached |= more
    assert reached == set(JobState)


def test_from_every_state_a_terminal_one_can_be_reached() -> None:
    ending = set(TERMINAL)
    while more := {s for s in JobState if ending & set(JOB[s].values())} - ending:
        ending |= more
    assert ending == set(JobState)
