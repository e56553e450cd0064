"""A noisy namespace and a quiet one on one agent, over the real wire."""

from pathlib import Path

from tests.e2e.faults.house import House
from tests.e2e.turns import QUIET, SETTINGS, most_between, starts_of


async def test_between_two_starts_of_a_quiet_namespace_a_noisy_one_has_at_most_one(
    tmp_path: Path,
) -> None:
    house = House(root=tmp_path, settings=SETTINGS)
    try:
        await house.serve()
        starts = await starts_of(house, noisy=60, quiet=8)
    finally:
        house.close()
    assert starts.count(QUIET) == 8
    assert starts.index(QUIET) <= 1
    assert most_between(starts) <= 1
