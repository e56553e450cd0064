"""How figures are told."""

import statistics
from typing import Any

Row = dict[str, Any]


def spread(name: str, seconds: list[float]) -> Row:
    """Return the median and the 99th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return {
        f"{name}_p50_ms": round(statistics.median(ordered) * 1000, 3),
        f"{name}_p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 3),
    }


def met(good: bool) -> str:
    """Say whether a target is met, so that a miss is seen."""
    return "meets" if good else "MISSES"
