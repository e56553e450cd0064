"""Puts together what deletes files and jobs again."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from farm.clock import Clock
from farm.config import Settings
from farm.jobs.handed_in import HandedIn
from farm.jobs.retention import Retention
from farm.manager.namespaces import NamespaceBook
from farm.stores.ledger import SqlLedger, SqlRetention
from farm.stores.ports.artifacts import ArtifactStore

_AT_MOST_S = 240.0
_SWEEPS = 4
"""In the time that something is kept, so that it is not kept for much longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The parts, as they belong together."""

    artifacts: ArtifactStore
    handed_in: HandedIn
    retention: Retention
    sweep_every_s: float


def keeping_of(
    settings: Settings,
    artifacts: ArtifactStore,
    ledger: SqlLedger,
    namespaces: NamespaceBook,
    clock: Clock,
    metrics: CollectorRegistry,
) -> Keeping:
    """Return them, as the settings say."""
    rules, keep_s = settings.artifacts, settings.jobs.keep_s
    handed_in = HandedIn(
        artifacts, clock, max_bytes=rules.files_max_bytes, keep_s=rules.files_keep_s
    )
    kept_s = (keep_s, rules.files_keep_s, rules.recordings_keep_s)
    shortest_s = min([_AT_MOST_S, *(one for one in kept_s if one is not None)])
    return Keeping(
        artifacts=artifacts,
        handed_in=handed_in,
        retention=Retention(
            SqlRetention(ledger.database),
            artifacts,
            handed_in,
            namespaces.names,
            clock,
            keep_s=keep_s,
            recordings_keep_s=rules.recordings_keep_s,
            metrics=metrics,
        ),
        sweep_every_s=max(1.0, shortest_s / _SWEEPS),
    )
