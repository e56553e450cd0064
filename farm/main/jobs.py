"""Puts together what takes jobs in and has them run."""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from farm.clock import Clock
from farm.config import Settings
from farm.core.model import ClientId, LinkId
from farm.jobs.agents import GoneRule
from farm.jobs.attempts import AttemptRunner
from farm.jobs.dispatcher import JobDispatcher
from farm.jobs.feed import JobFeed
from farm.jobs.identities import IdentityBook
from farm.jobs.ids import random_id
from farm.jobs.interventions import ANSWER_S, Interventions
from farm.jobs.leasing import Leases
from farm.jobs.live import LiveAttempts
from farm.jobs.meters import AttemptMeters
from farm.jobs.neighbours import Neighbours
from farm.jobs.owning import Owning
from farm.jobs.parking import Parking
from farm.jobs.recorder import Recorder
from farm.jobs.rules import AttemptRules
from farm.jobs.service import JobService
from farm.manager.agent_news import AgentNews
from farm.manager.delivery import AppNode
from farm.manager.manager import WorkerContextManager
from farm.manager.relay import Relay
from farm.protocol.plan import Egress
from farm.stores.ports.cluster_events import ClusterEvents
from farm.stores.ports.deployments import QueueCatalogue
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.placements import PlacementReader
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """What jobs and what is lent to them are held to."""

    attempts: AttemptRules
    assignment_timeout_s: float = 300.0
    provision_timeout_s: float = 30.0
    gone_after_s: float
    """After so long a silence nothing runs on an agent."""
    postponed_s: float = 0.0
    """By so long an agent whose link is open is given up later."""


def job_rules(settings: Settings) -> JobRules:
    """Return them, as the settings say."""
    link, rules = settings.link, settings.jobs
    return JobRules(
        attempts=AttemptRules(
            egress=Egress(allow=settings.egress_allow),
            renew_interval_s=rules.assignment_timeout_s / 3,
            retry_initial_s=rules.retry_initial_s,
            retry_max_s=rules.retry_max_s,
            max_free_losses=rules.max_free_losses,
            recording_max_bytes=settings.artifacts.recording_max_bytes,
        ),
        assignment_timeout_s=rules.assignment_timeout_s,
        provision_timeout_s=rules.provision_timeout_s,
        gone_after_s=link.gone_after_s,
        postponed_s=link.window_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The parts, as they belong together."""

    feed: JobFeed
    live: LiveAttempts
    manager: WorkerContextManager
    dispatcher: JobDispatcher
    recorder: Recorder
    interventions: Interventions
    service: JobService
    neighbours: Neighbours | None
    owning: Owning | None
    """Both where others work with the same ledger."""


def jobs_of(
    *,
    ledger: Ledger,
    registry: Registry,
    app_node: AppNode,
    identities: IdentityBook,
    events: ClusterEvents,
    clock: Clock,
    rules: JobRules,
    queues: QueueCatalogue,
    placements: PlacementReader | None = None,
    coordinator: str | None = None,
    metrics: CollectorRegistry | None = None,
    shared: SharedLedger | None = None,
    relay: Relay | None = None,
    on_success: Callable[[], None] = lambda: None,
    end_link: Callable[[ClientId, LinkId], None] = lambda *_: None,
    answer_s: float = ANSWER_S,
) -> Jobs:
    """Return them, over these stores.

    Args:
        ledger: Where the jobs are.
        registry: Who is there, and what is lent.
        app_node: Who speaks to the agents.
        identities: What is saved of identities.
        events: Where it is told what happens.
        clock: The time.
        rules: What they are held to.
        queues: The task queues there are.
        placements: On which nodes the work of each namespace runs; None is on any.
        coordinator: See `JobDispatcher`.
        metrics: Where attempts are counted.
        shared: The same ledger as one that others share.
        relay: Reaches those.
        on_success: Called when an attempt has succeeded.
        end_link: Has a link closed that is held here, so that its agent dials again.
        answer_s: See `Interventions`.
    """
    feed, live = JobFeed(), LiveAttempts()
    manager = WorkerContextManager(
        context_registry=registry,
        connection_registry=registry,
        browser_window_registry=registry,
        app_node=app_node,
        placements=placements,
        clock=clock,
        new_id=lambda: random_id("cmd"),
        task_timeout_ms=rules.assignment_timeout_s * 1000,
        provision_timeout_s=rules.provision_timeout_s,
        queues=queues,
    )
    owning = None
    if shared is not None:
        owning = Owning(
            shared=shared,
            registry=registry,
            app_node=app_node,
            live=live,
            clock=clock,
            gone_after_s=rules.gone_after_s,
            end=end_link,
        )
    dispatcher = JobDispatcher(
        ledger=ledger,
        registry=registry,
        manager=manager,
        runner=AttemptRunner(
            ledger=ledger,
            app_node=app_node,
            live=live,
            feed=feed,
            clock=clock,
            new_id=random_id,
            rules=rules.attempts,
            meters=AttemptMeters(CollectorRegistry() if metrics is None else metrics),
            on_success=on_success,
            take_back=None if owning is None else owning.take_back,
        ),
        live=live,
        leases=Leases(identities.store),
        feed=feed,
        news=AgentNews(events),
        parking=Parking(events, shared=shared is not None),
        clock=clock,
        gone=GoneRule(after_s=rules.gone_after_s, postponed_s=rules.postponed_s),
        coordinator=coordinator,
        shared=shared,
    )
    interventions = Interventions(live, app_node, random_id, answer_s=answer_s)
    neighbours = None
    if shared is not None and relay is not None:
        neighbours = Neighbours(relay, feed, dispatcher, interventions)
    return Jobs(
        feed=feed,
        live=live,
        manager=manager,
        dispatcher=dispatcher,
        recorder=Recorder(ledger, live, feed, clock),
        interventions=interventions,
        service=JobService(
            ledger,
            identities,
            dispatcher,
            feed,
            clock,
            interventions,
            neighbours,
            queues=queues,
        ),
        neighbours=neighbours,
        owning=owning,
    )
