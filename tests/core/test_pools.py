"""How many slots may be announced, and which pool is meant by no name."""

import pytest

from farm.core.pools import (
    _MOST_SLOTS,
    DEFAULT_QUEUE,
    capacity_flaw,
    checked_capacity,
    queue_of,
)


@pytest.mark.parametrize("slots", [None, 1, 2, _MOST_SLOTS])
def test_one_slot_or_more_may_be_announced_or_none_yet(slots: int | None) -> None:
    assert capacity_flaw(slots) is None


@pytest.mark.parametrize("slots", [0, -1])
def test_no_slots_are_refused_by_name(slots: int) -> None:
    assert capacity_flaw(slots) == f"max_concurrency is at least 1, not {slots}"
    with pytest.raises(ValueError, match="max_concurrency is at least 1"):
        checked_capacity(slots)


@pytest.mark.parametrize("name", [None, ""])
def test_no_name_means_the_default_queue(name: str | None) -> None:
    assert queue_of(name) == DEFAULT_QUEUE
    assert queue_of("crawl") == "crawl"
