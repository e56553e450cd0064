"""What the measurement of the fleet says of its figures."""

from typing import Any

from tests.benchmarks import choosing
from tests.benchmarks.figures import spread
from tests.benchmarks.fleet import verdicts

IN_TIME: dict[str, Any] = {
    "closed_noticed_windows": 1.25,
    "frozen_noticed_windows": 2.25,
    "noisy_between_quiet": 1,
    "freed_to_started_p50_ms": 3.0,
    "choosing": {},
}
LATE = {
    **IN_TIME,
    "closed_noticed_windows": 1.26,
    "frozen_noticed_windows": 2.26,
    "noisy_between_quiet": 2,
}


def said(lines: list[str]) -> list[str]:
    return [word for line in lines for word in ("meets", "MISSES") if f"({word} " in line]


def test_what_is_noticed_too_late_or_is_not_fair_is_a_miss() -> None:
    assert said(verdicts(IN_TIME)) == ["meets"] * 3
    assert said(verdicts(LATE)) == ["MISSES"] * 3


def test_what_takes_longer_the_more_agents_there_are_is_a_miss() -> None:
    few: dict[str, Any] = {"agents": 10, "full_cpu_ms": 0.1, "unfit_cpu_ms": 0.2}
    few |= {f"{name}_p50_ms": 1.0 for name in ("acquire", "reserve", "full_slot")}
    many = few | {"agents": 100, "acquire_p50_ms": 2.0, "reserve_p50_ms": 2.1, "full_cpu_ms": 1.0}
    lines = choosing.verdicts({"memory": [few, many]})
    assert said(lines) == ["meets", "MISSES", "meets"]
    assert "memory: a miss costs 10.0 CPU-us an agent (full)" in lines


def test_a_spread_is_in_milliseconds() -> None:
    assert spread("x", [0.001, 0.002, 0.004]) == {"x_p50_ms": 2.0, "x_p99_ms": 4.0}
