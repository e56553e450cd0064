from time import process_time

from hypothesis import given
from hypothesis import strategies as st


@given(st.just(0.25))
def test_an_example_may_take_long_on_a_busy_machine(busy_s: float) -> None:
    began = process_time()
    while process_time() - began < busy_s:
        pass
