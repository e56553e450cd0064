"""What the benchmark says of the figures it has found."""

from typing import Any

from tests.benchmarks.__main__ import _verdicts

SPEED = {
    "bare-context": 10.0,
    "bare-tab": 30.0,
    "farm-clean": 11.0,
    "farm-reset": 17.5,
    "farm-reuse": 25.0,
    "farm-flow": 40.0,
}


def rows(**cpu_ms: float) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "concurrency": 1,
            "jobs_per_s": speed,
            "cpu_ms_per_job": cpu_ms.get(name.replace("-", "_"), 50.0),
        }
        for name, speed in SPEED.items()
    ]


def test_a_miss_is_reported_as_a_miss() -> None:
    speed, cpu, _ = _verdicts(rows(farm_clean=60.0, farm_reuse=80.0), shell=False)
    assert "clean 1.10 (meets 1.0), reset 1.75 (MISSES 1.8)" in speed
    assert "(meets 1.25)" in cpu
    assert "reuse +30.0 CPU-ms against a bare tab (MISSES 25)" in cpu


def test_a_shell_has_a_bound_of_its_own() -> None:
    speed, *_ = _verdicts(rows(), shell=True)
    assert "reset 1.75 (meets 1.7)" in speed
