"""Who has control: every move in every state."""

import pytest

from agent.machine.control import CONTROL, HELD, Holder, Move, OutOfPlaceError, move

A, PG, P, T, H = Holder
PAUSE, RESUME, TAKE, BACK, REACH, ASK, LEAVE, GIVE_UP = Move

EXPECTED: dict[Holder, dict[Move, Holder]] = {
    A: {PAUSE: PG, RESUME: A, TAKE: T, REACH: A, ASK: H},
    PG: {PAUSE: PG, RESUME: A, TAKE: T, REACH: P, ASK: H},
    P: {PAUSE: P, RESUME: A, TAKE: H},
    T: {TAKE: T, BACK: A, LEAVE: PG, REACH: H, ASK: H},
    H: {TAKE: H, BACK: A, LEAVE: P, GIVE_UP: A},
}


@pytest.mark.parametrize("what", Move)
@pytest.mark.parametrize("holder", Holder)
def test_every_move_in_every_state(holder: Holder, what: Move) -> None:
    if what in EXPECTED[holder]:
        assert move(holder, what) is EXPECTED[holder][what]
        return
    with pytest.raises(OutOfPlaceError, match="does not follow while control is"):
        move(holder, what)


def test_what_is_refused_says_what_would_do() -> None:
    with pytest.raises(
        OutOfPlaceError, match=r"^resume .* control is human; .* or hand back would"
    ):
        move(Holder.HUMAN, Move.RESUME)


def test_a_step_in_progress_is_over_before_anything_is_held() -> None:
    """From automation nothing leads to where steps wait, but the place between two of them."""
    for holder in (A, PG, T):
        leads = {what for what, to in CONTROL[holder].items() if to in HELD}
        assert leads <= {REACH, ASK}


def test_from_everywhere_a_person_can_let_the_job_go_on() -> None:
    for holder in Holder:
        assert A in (CONTROL[holder].get(RESUME), CONTROL[holder].get(BACK))
