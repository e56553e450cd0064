"""What the links of agents are given."""

from collections.abc import Callable
from dataclasses import dataclass

from farm.api.agent_tokens import AgentTokens
from farm.clock import Clock
from farm.core.model import ClientId
from farm.jobs.dispatcher import JobDispatcher
from farm.jobs.interventions import Interventions
from farm.jobs.recorder import Recorder
from farm.jobs.sharing import Sharing
from farm.manager.admission import Registrations
from farm.manager.agent_news import AgentNews
from farm.manager.delivery import AppNode
from farm.manager.disconnecting import Disconnects
from farm.protocol import messages as wire
from farm.stores.ports.registries import Registry
from farm.stores.ports.sharing import SharedLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """How long silence means what; see `farm.config.LinkSettings`."""

    heartbeat_interval_s: float
    window_s: float
    max_frame_bytes: int
    coordinator: str = "farm"
    """Whose links they are; links are named after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDeps:
    """Everything that links use of the rest of the farm."""

    registry: Registry
    registrations: Registrations
    app_node: AppNode
    dispatcher: JobDispatcher
    recorder: Recorder
    disconnects: Disconnects
    interventions: Interventions
    news: AgentNews
    tokens: AgentTokens
    """Told of who is let in."""
    sharing: Sharing | None = None
    shared: SharedLedger | None = None
    """The ledger that coordinators share, where they do."""
    channel_refused: Callable[[ClientId, wire.ChannelRefused], None]
    clock: Clock
    rules: LinkRules
