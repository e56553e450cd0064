"""How many attempts there are, how they end, and how long they take."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from farm.core.job_states import AttemptState
from farm.core.model import Namespace

_UP_TO_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0)


class AttemptMeters:
    """Counts for this coordinator, since it began."""

    def __init__(self, metrics: CollectorRegistry) -> None:
        self._dispatched = Counter(
            "farm_attempts_dispatched",
            "Attempts that were begun.",
            ["namespace"],
            registry=metrics,
        )
        self._completed = Counter(
            "farm_attempts_completed",
            "Attempts that have ended, by how.",
            ["namespace", "outcome"],
            registry=metrics,
        )
        self._durations = Histogram(
            "farm_attempt_duration_seconds",
            "How long attempts took, those of earlier lives of the coordinator included.",
            ["namespace"],
            buckets=_UP_TO_S,
            registry=metrics,
        )

    def dispatched(self, namespace: Namespace) -> None:
        """One was begun."""
        self._dispatched.labels(namespace).inc()

    def completed(self, namespace: Namespace, state: AttemptState, took_s: float) -> None:
        """One has ended."""
        self._completed.labels(namespace, state.value).inc()
        self._durations.labels(namespace).observe(max(0.0, took_s))
