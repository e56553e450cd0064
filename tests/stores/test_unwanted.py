"""What could not be given back is given back again and again, for a while."""

from farm.core.model import ReservationId
from farm.stores.redis.unwanted import Unwanted

A, B = ReservationId("a"), ReservationId("b")


def test_each_is_given_back_ten_times_and_anew_when_it_comes_again() -> None:
    unwanted = Unwanted()
    unwanted.add(A)
    for _ in range(9):
        unwanted.given_back(unwanted.all())
    assert unwanted.all() == (A,)
    unwanted.add(B)
    unwanted.given_back(unwanted.all())
    assert unwanted.all() == (B,)
    unwanted.add(A)
    unwanted.given_back([A])
    assert set(unwanted.all()) == {A, B}


def test_what_came_while_it_was_done_is_not_taken_for_done() -> None:
    unwanted = Unwanted()
    unwanted.add(A)
    asked = unwanted.all()
    unwanted.add(B)
    for _ in range(10):
        unwanted.given_back(asked)
    assert unwanted.all() == (B,)


def test_of_very_many_the_latest_are_remembered() -> None:
    unwanted = Unwanted()
    for number in range(10_001):
        unwanted.add(ReservationId(f"{number}"))
    assert len(unwanted.all()) == 10_000
    assert ReservationId("0") not in unwanted.all()
    assert ReservationId("10000") in unwanted.all()
