"""What is measured of the stores."""

from prometheus_client import CollectorRegistry, Histogram

from farm.stores.ports.timing import Observe

_UP_TO_S = (0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def store_times(metrics: CollectorRegistry) -> Observe:
    """Return who is to be told how long stores took."""
    durations = Histogram(
        "farm_store_operation_duration_seconds",
        "How long operations of the stores took, whether they went well or not.",
        ["store", "operation"],
        buckets=_UP_TO_S,
        registry=metrics,
    )

    def observe(store: str, operation: str, seconds: float) -> None:
        durations.labels(store, operation).observe(seconds)

    return observe
