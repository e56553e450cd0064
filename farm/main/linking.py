"""Puts together what agents dial, what else they open, and how they leave."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from farm.api.agent_links import AgentLinks
from farm.api.agent_tokens import AgentTokens
from farm.api.channels import AgentChannels
from farm.api.link_deps import LinkDeps, LinkRules
from farm.api.poll_forwarding import PollForwarding
from farm.api.polling import LongPolls
from farm.config import Settings
from farm.jobs.sharing import Sharing
from farm.main.jobs import Jobs
from farm.main.stores import Stores
from farm.manager.admission import Registrations
from farm.manager.agent_news import AgentNews
from farm.manager.bridges import Bridges
from farm.manager.delivery import AppNode
from farm.manager.disconnecting import Disconnects
from farm.manager.leaving import Leaving
from farm.manager.namespaces import NamespaceBook
from farm.stores.ports.routes import LEASE_S
from farm.stores.ports.sharing import SharedLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """The parts, as they belong together."""

    tokens: AgentTokens
    registrations: Registrations
    links: AgentLinks
    polls: LongPolls
    disconnects: Disconnects
    leaving: Leaving
    bridges: Bridges
    channels: AgentChannels


def linking_of(
    settings: Settings,
    stores: Stores,
    *,
    app_node: AppNode,
    jobs: Jobs,
    namespaces: NamespaceBook,
    sharing: Sharing | None,
    shared: SharedLedger | None,
    metrics: CollectorRegistry,
) -> Linking:
    """Return them, as the settings say."""
    registry, relay, clock = stores.registry, stores.relay, stores.clock
    tokens, news = AgentTokens(shared), AgentNews(stores.events)
    bridges = Bridges(stores.parcels, silence_s=LEASE_S if relay is None else relay.lease_s)
    channels = AgentChannels(app_node.tell_here, tokens.owns, bridges)
    disconnects = Disconnects(jobs.manager, clock, grace_s=settings.link.grace_s)
    registrations = Registrations(
        registry,
        clock,
        gate=namespaces,
        tell=stores.events.publish,
        metrics=metrics,
        probation=True,
    )
    links = AgentLinks(
        LinkDeps(
            registry=registry,
            registrations=registrations,
            app_node=app_node,
            dispatcher=jobs.dispatcher,
            recorder=jobs.recorder,
            disconnects=disconnects,
            interventions=jobs.interventions,
            news=news,
            tokens=tokens,
            sharing=sharing,
            shared=shared,
            channel_refused=channels.refused,
            clock=clock,
            rules=LinkRules(
                heartbeat_interval_s=settings.link.heartbeat_interval_s,
                window_s=settings.link.window_s,
                max_frame_bytes=settings.link.max_frame_bytes,
                coordinator=stores.coordinator or "farm",
            ),
        )
    )
    leaving = Leaving(
        registry=registry,
        app_node=app_node,
        news=news,
        end_link=links.end,
        clock=clock,
        drain_s=settings.link.drain_s,
        metrics=metrics,
    )
    return Linking(
        tokens=tokens,
        registrations=registrations,
        links=links,
        polls=LongPolls(links, None if relay is None else PollForwarding(relay)),
        disconnects=disconnects,
        leaving=leaving,
        bridges=bridges,
        channels=channels,
    )
