"""What a reservation counts as, and that giving it back undoes just that."""

import pytest

from farm.core.model import ClientId, ReservationId, WindowId
from farm.core.reservation import Reservation, given_back, reserved
from farm.core.sites import Need, Site
from tests.core.test_decide import client


def reservation(need: Need, identity: str | None = None) -> Reservation:
    window_id = WindowId("W1") if need is Need.TAB else None
    return Reservation(
        reservation_id=ReservationId("1"),
        site=Site(client_id=ClientId("a"), need=need, window_id=window_id),
        epoch=1,
        identity=identity,
    )


KINDS = {
    "a window": reservation(Need.WINDOW),
    "the window of an identity": reservation(Need.WINDOW, "shop"),
    "a tab": reservation(Need.TAB),
    "a flow": reservation(Need.FLOW),
}


@pytest.mark.parametrize("one", KINDS.values(), ids=KINDS)
def test_each_takes_one_slot_and_gives_it_back(one: Reservation) -> None:
    before = client()
    first = reserved(before, one)
    second = reserved(first, one)
    assert [c.used_slots() for c in (before, first, second)] == [0, 1, 2]
    assert given_back(second, one) == first
    assert given_back(first, one) == before


def test_each_counts_as_what_it_is() -> None:
    both = client()
    for one in KINDS.values():
        both = reserved(both, one)
    assert (both.opening_windows, both.opening_flows) == (2, 1)
    assert (both.opening_tabs, both.opening_identities) == ({"W1": 1}, {"shop": 1})


def test_only_a_tab_is_in_a_window_that_is_there() -> None:
    assert reservation(Need.TAB).site.window == "W1"
    for need in (Need.WINDOW, Need.FLOW):
        with pytest.raises(ValueError, match=need):
            _ = reservation(need).site.window
