"""Puts together what shows tabs to people."""

from prometheus_client import CollectorRegistry, Gauge

from farm.api.channels import AgentChannels
from farm.api.live.elsewhere import Elsewhere, HeldBy
from farm.api.live.hub import Hub, HubRules
from farm.api.live.links import LiveLinks
from farm.api.live.places import Places
from farm.api.live.routes import Live
from farm.api.live.session import Acts, Sessions
from farm.api.live.wall import Wall
from farm.clock import Clock
from farm.config import LiveSettings
from farm.jobs.feed import JobFeed
from farm.manager.bridges import Bridges


def live_of(
    settings: LiveSettings,
    *,
    channels: AgentChannels,
    places: Places,
    acts: Acts,
    feed: JobFeed,
    clock: Clock,
    key: bytes,
    coordinator: str | None,
    bridges: Bridges,
    held_by: HeldBy,
    metrics: CollectorRegistry,
) -> Live:
    """Return it, as the settings want it; how many watch is among the metrics."""
    rules = HubRules(
        max_viewers=settings.max_viewers,
        max_viewers_per_tab=settings.max_viewers_per_tab,
        grace_s=settings.grace_s,
    )
    hub = Hub(channels, rules)
    viewers = Gauge(
        "farm_live_viewers", "Viewers of tabs of agents that are linked here.", registry=metrics
    )
    viewers.set_function(hub.count)
    carried = Gauge("farm_bridges", "Sockets carried from or to others.", registry=metrics)
    carried.set_function(bridges.count)
    sessions = Sessions(hub=hub, places=places, acts=acts, clock=clock, coordinator=coordinator)
    return Live(
        links=LiveLinks(key, clock),
        places=places,
        sessions=sessions,
        wall=Wall(places, feed, clock),
        channels=channels,
        default_link_s=settings.link_s,
        longest_link_s=settings.longest_link_s,
        elsewhere=Elsewhere(bridges, held_by, places, sessions),
    )
