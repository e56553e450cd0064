import re

from hypothesis import given
from hypothesis import strategies as st

from farm.core.model import Instant
from farm.jobs.ids import JobIds


@given(st.lists(st.floats(min_value=0, max_value=2**33), min_size=2, max_size=50))
def test_ids_sort_in_the_order_in_which_they_were_given(times: list[float]) -> None:
    ids = JobIds()
    given_out = [ids.next(Instant(time)) for time in times]
    assert given_out == sorted(set(given_out))
    assert all(re.fullmatch(r"job_[0-9A-HJKMNP-TV-Z]{26}", one) for one in given_out)


def test_two_makers_do_not_give_the_same_id_at_one_moment() -> None:
    assert JobIds().next(Instant(1.0)) != JobIds().next(Instant(1.0))
