"""What the measurement of the fleet says of its figures."""

from tests.benchmarks.fleet import spread, verdicts


def test_a_dead_agent_that_is_noticed_too_late_is_a_miss() -> None:
    in_time = {"closed_noticed_windows": 1.25, "frozen_noticed_windows": 2.25}
    late = {"closed_noticed_windows": 1.26, "frozen_noticed_windows": 2.26}
    assert [line.split("(")[1].split()[0] for line in verdicts(in_time)] == ["meets", "meets"]
    assert [line.split("(")[1].split()[0] for line in verdicts(late)] == ["MISSES", "MISSES"]


def test_a_spread_is_in_milliseconds() -> None:
    assert spread("x", [0.001, 0.002, 0.004]) == {"x_p50_ms": 2.0, "x_p99_ms": 4.0}
