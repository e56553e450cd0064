"""`/metrics`: gauges read at scrape time, beside what other rooms count."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from farm.api.deps import deps_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import is_present
from farm.core.census import PoolVerdict
from farm.core.control import HELD, Control
from farm.core.job_states import JobState
from farm.core.model import ContextState, Namespace, Owner, Snapshot
from farm.core.pools import Exclusion

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Gauges(Collector):
    """The farm at one moment."""

    def __init__(
        self,
        jobs: Mapping[JobState, int],
        controls: Mapping[Control, int],
        unserved: Mapping[PoolVerdict, int],
        snapshot: Snapshot,
    ) -> None:
        self._jobs = jobs
        self._unserved = unserved
        self._controls = controls
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Yield every gauge; a state that nothing is in is 0, not missing."""
        yield _by_label(
            "farm_jobs", "Jobs by state.", "state", {s: self._jobs.get(s, 0) for s in JobState}
        )
        yield _by_label(
            "farm_jobs_held",
            "Jobs that have not ended and wait for a person, by who has control.",
            "control",
            {control: self._controls.get(control, 0) for control in sorted(HELD)},
        )
        yield _by_label(
            "farm_jobs_unserved",
            "Queued jobs that no agent can take now, by verdict.",
            "verdict",
            {verdict.value: count for verdict, count in self._unserved.items()},
        )
        clients = self._snapshot.clients
        present = [client for client in clients if is_present(client, self._snapshot)]
        yield _by_label(
            "farm_agents",
            "Agents by presence.",
            "presence",
            {"present": len(present), "absent": len(clients) - len(present)},
        )
        yield _by_labels(
            "farm_agents_present",
            "Present agents by namespace and type; one of several namespaces counts in each.",
            ("namespace", "type"),
            Counter(
                (name, client.client_type.value) for client in present for name in client.namespaces
            ),
        )
        yield _by_labels(
            "farm_assignments_in_flight",
            "What is lent, by namespace.",
            ("namespace",),
            Counter(
                (held.namespace,) for client in clients for held in client.assignments.values()
            ),
        )
        yield GaugeMetricFamily(
            "farm_agents_draining",
            "Present agents that take nothing new.",
            value=sum(client.draining for client in present),
        )
        excluded = Counter(client.excluded for client in present)
        yield _by_label(
            "farm_agents_excluded",
            "Present agents that are not chosen for now, by why.",
            "exclusion",
            {kind: excluded[kind] for kind in Exclusion},
        )
        states = Counter(c.state for client in present for c in client.contexts.values())
        yield _by_label(
            "farm_contexts",
            "Contexts of present agents by state.",
            "state",
            {s: states[s] for s in ContextState},
        )
        yield GaugeMetricFamily(
            "farm_windows",
            "Windows of present agents.",
            value=sum(len(client.windows) for client in present),
        )
        windows = [window for client in present for window in client.windows.values()]
        yield GaugeMetricFamily(
            "farm_windows_prepared",
            "Of these, the ones that were opened before anybody asked, and wait to be lent.",
            value=sum(window.prepared for window in windows),
        )
        yield GaugeMetricFamily(
            "farm_windows_of_people",
            "Of these, the ones that people have opened for themselves.",
            value=sum(window.owner is Owner.USER for window in windows),
        )
        yield GaugeMetricFamily(
            "farm_slots",
            "What present agents may hold at once.",
            value=sum(client.capacity.max_concurrency or 0 for client in present),
        )
        yield GaugeMetricFamily(
            "farm_slots_used",
            "What they hold.",
            value=sum(client.used_slots() for client in present),
        )


class ConnectedAgents(Collector):
    """How many agents each namespace has on links of this coordinator."""

    def __init__(self, connected: Callable[[], Mapping[Namespace, int]]) -> None:
        self._connected = connected

    def collect(self) -> Iterator[Metric]:
        """Yield the gauge; an agent of several namespaces counts in each."""
        yield _by_label(
            "farm_agents_connected",
            "Agents that are linked to this coordinator, by namespace.",
            "namespace",
            {str(name): count for name, count in self._connected().items()},
        )


def _by_label(
    name: str, documentation: str, label: str, values: Mapping[str, int]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for value, count in values.items():
        family.add_metric([str(value)], count)
    return family


def _by_labels(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    values: Mapping[tuple[str, ...], int],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for value, count in sorted(values.items()):
        family.add_metric(value, count)
    return family


async def metrics(request: web.Request) -> web.Response:
    """Read the gauges and return everything in Prometheus' text form."""
    deps = deps_of(request)
    gauges = CollectorRegistry(auto_describe=False)
    gauges.register(
        _Gauges(
            await deps.ledger.counts(),
            await deps.ledger.controls(),
            await deps.explaining.counts(),
            await deps.registry.snapshot(now=deps.clock()),
        )
    )
    body = generate_latest(gauges) + generate_latest(deps.metrics)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="Metrics for Prometheus",
        access=Access.ADMIN,
        answers=(Answer(description="In Prometheus' text form.", media_types=("text/plain",)),),
    ),
)
