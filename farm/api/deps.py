"""What the handlers are given."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.auth import TokenBook
from farm.api.readiness import Readiness
from farm.api.request_state import PRINCIPAL, Principal
from farm.api.routes import Access
from farm.clock import Clock
from farm.core.model import DEFAULT_NAMESPACE, ClientId, Namespace
from farm.errors import ForbiddenError
from farm.jobs.feed import JobFeed
from farm.jobs.handed_in import HandedIn
from farm.jobs.identities import IdentityBook
from farm.jobs.readings import Readings
from farm.jobs.retention import Retention
from farm.jobs.service import JobService
from farm.jobs.why import Explaining
from farm.manager.delivery import AppNode
from farm.manager.leaving import Leaving
from farm.manager.misses import Miss
from farm.manager.namespaces import NamespaceBook
from farm.stores.ports.artifacts import ArtifactStore
from farm.stores.ports.cluster_events import ClusterEvents
from farm.stores.ports.contexts import ContextRegistry
from farm.stores.ports.deployments import Deployments
from farm.stores.ports.ledger import Ledger

Owns = Callable[[str, ClientId], Awaitable[bool]]
"""(token_id, client_id) -> whether this token was the last to be connected as this agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """Everything the API uses of the rest of the farm."""

    ledger: Ledger
    artifacts: ArtifactStore
    handed_in: HandedIn
    """The bounds of the files that jobs are given."""
    retention: Retention
    registry: ContextRegistry
    app_node: AppNode
    """With the evidence of commands."""
    jobs: JobService
    identities: IdentityBook
    readings: Readings
    """What jobs wait for, and what they do."""
    feed: JobFeed
    events: ClusterEvents
    leaving: Leaving
    deployments: Deployments
    deployed: Callable[[Namespace], None]
    """To be told that what the deployments of a namespace serve has changed."""
    tokens: TokenBook
    namespaces: NamespaceBook
    owns: Owns
    explaining: Explaining
    """Why jobs wait."""
    misses: Callable[[Namespace], Sequence[Miss]]
    """Why the last acquisitions of a namespace came to nothing, the latest first."""
    readiness: Readiness
    clock: Clock
    metrics: CollectorRegistry
    """Counters and histograms of other rooms, shown beside the API's gauges."""
    max_artifact_bytes: int
    recordings_max_bytes: int = 16 * 1024**3
    """Of one namespace together."""


DEPS = web.AppKey("deps", Deps)


def deps_of(request: web.Request) -> Deps:
    """Return what the application was built with."""
    return request.app[DEPS]


def principal_of(request: web.Request) -> Principal:
    """Return who asks; only for routes that are not open."""
    return request[PRINCIPAL]


def operator_of(request: web.Request, *, required: bool = False) -> bool:
    """Tell whether who asks has the whole farm in hand: an admin of its first namespace.

    Raises:
        ForbiddenError: If not, and it is required.
    """
    asks = principal_of(request)
    operates = asks.scope == Access.ADMIN and asks.namespace == DEFAULT_NAMESPACE
    if required and not operates:
        raise ForbiddenError(f"this is for admins of the namespace {DEFAULT_NAMESPACE!r}")
    return operates


def namespace_of(request: web.Request) -> Namespace:
    """Return the namespace of who asks (P16)."""
    return principal_of(request).namespace
