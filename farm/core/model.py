"""The values the core decides over: frozen, comparable, without behaviour that needs I/O.

Times are seconds since the Unix epoch (`Instant`); whoever calls the core supplies `now`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from farm.core.placement import BrowserPlacement, Mode
from farm.core.pools import DEFAULT_QUEUE, JOB, Exclusion, queue_of

Instant = NewType("Instant", float)
Namespace = NewType("Namespace", str)
DEFAULT_NAMESPACE = Namespace("default")
"""The first one, which every farm has; its admins are the operators of the farm."""
ClientId = NewType("ClientId", str)
ContextId = NewType("ContextId", str)
WindowId = NewType("WindowId", str)
TaskId = NewType("TaskId", str)
LinkId = NewType("LinkId", str)
"""One life of an agent's connection."""
ReservationId = NewType("ReservationId", str)
"""Given by the store, and never again to another reservation."""


def link_of(coordinator: str, unique: str) -> LinkId:
    """Name a link after the coordinator that holds it, where several share the agents."""
    return LinkId(f"{coordinator}/{unique}")


def is_link_of(coordinator: str, link: LinkId) -> bool:
    """Tell whether this coordinator, in this or an earlier life, holds the link."""
    return link.startswith(f"{coordinator}/")


class ClientType(StrEnum):
    """What kind of place an agent offers."""

    BROWSER = "browser"
    CONSOLE = "console"
    MOBILE = "mobile"
    WEB = "web"


class Owner(StrEnum):
    """Whose a window or context is."""

    WORKER = "worker"
    USER = "user"


class ContextState(StrEnum):
    """What a context is doing, as its agent sees it; says nothing about assignment."""

    ACTIVE = "active"
    IDLE = "idle"
    LOADING = "loading"
    CRASHED = "crashed"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Token:
    """A fencing token; a later one is greater, across restarts of the coordinator too."""

    store_epoch: int
    counter: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What an agent may hold; `max_concurrency` None is unannounced and counts as full."""

    max_concurrency: int | None = None
    max_windows: int = 1
    max_tabs_per_window: int = 1
    max_flows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a window is on its screen, in pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One browser window, in exactly one identity."""

    window_id: WindowId
    identity: str | None = None
    profile: str = ""
    """Names the options it was opened with."""
    owner: Owner = Owner.WORKER
    bounds: Bounds | None = None
    prepared: bool = False
    """Its agent opened it before anybody asked; for people, since it is lent like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One place that work can run, as last reported."""

    context_id: ContextId
    window_id: WindowId | None = None
    owner: Owner = Owner.WORKER
    state: ContextState = ContextState.IDLE
    clean: bool = True
    opener: ContextId | None = None
    """The context whose task has opened it, and with which it goes. Such a one is never clean."""

    @property
    def lendable(self) -> bool:
        """Tell whether it would be lent if nobody held it."""
        ready = self.state in (ContextState.ACTIVE, ContextState.IDLE)
        return ready and self.clean and self.owner is Owner.WORKER


class Contexts(dict[ContextId, Context]):
    """The contexts of one client by id, and the tabs of a window without a look at the others.

    Not to be changed once made.
    """

    __slots__ = ("_by_window",)
    _by_window: dict[WindowId, list[ContextId]]

    @classmethod
    def of(cls, contexts: Mapping[ContextId, Context]) -> "Contexts":
        """Return these, indexed."""
        return contexts if isinstance(contexts, cls) else cls(contexts)

    def in_window(self, window_id: WindowId) -> Sequence[Context]:
        """Return the tabs of a window."""
        return [self[key] for key in self._windows().get(window_id, ()) if key in self]

    def but(self, changed: Mapping[ContextId, Context]) -> "Contexts":
        """Return them with some changed, each in the window it was in."""
        after = Contexts(self)
        after.update(changed)
        after._by_window = self._windows()
        return after

    def _windows(self) -> dict[WindowId, list[ContextId]]:
        if not hasattr(self, "_by_window"):
            self._by_window = {}
            for context in self.values():
                if context.window_id is not None:
                    self._by_window.setdefault(context.window_id, []).append(context.context_id)
        return self._by_window


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The lease of one context by one task."""

    namespace: Namespace
    client_id: ClientId
    epoch: int
    context_id: ContextId
    task_id: TaskId
    token: Token
    since: Instant
    renewed_at: Instant
    expires_at: Instant
    dedicated: bool = False
    """Nobody else is given a tab in the window of the context while this holds."""
    reservation_id: ReservationId | None = None
    """The reservation it was made of, where its context was created for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """An agent is to leave. The order ends with the link it was given on."""

    by: str
    """Who wants it, for people."""
    since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One agent as the registry knows it at one moment, with all it has reported."""

    client_id: ClientId
    client_type: ClientType
    link: LinkId | None
    """None while the agent is away."""
    epoch: int
    instance: str
    namespaces: tuple[Namespace, ...]
    metadata: Mapping[str, Any]
    capacity: Capacity
    seen_at: Instant
    """When a frame of its runtime last arrived."""
    task_queue: str = DEFAULT_QUEUE
    """The one pool it serves in each of its namespaces."""
    activity_types: frozenset[str] = frozenset({JOB})
    node: str | None = None
    """Where it is, such as its host or the way its traffic goes out; never an empty text."""
    excluded: Exclusion | None = None
    deployment: str | None = None
    """What it was rolled out as, in its own words; None for one started by hand."""
    draining: bool = False
    """It takes nothing new, because it says so or was asked to leave."""
    draining_because: str = ""
    """In its own words; empty where it has been asked to, or does not say."""
    drain: DrainOrder | None = None
    """That it was asked to leave, on this link."""
    browser: str | None = None
    windows: Mapping[WindowId, Window] = field(default_factory=dict)
    contexts: Mapping[ContextId, Context] = field(default_factory=Contexts)
    assignments: Mapping[ContextId, Assignment] = field(default_factory=dict)
    opening_windows: int = 0
    """Windows being created, each with its first tab."""
    opening_tabs: Mapping[WindowId, int] = field(default_factory=dict)
    opening_identities: Mapping[str, int] = field(default_factory=dict)
    """Identities whose first window is being created."""
    opening_flows: int = 0
    """Console flows being created."""
    reserved_slots: int = 0
    """Slots taken for work that is in no context yet."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "contexts", Contexts.of(self.contexts))
        object.__setattr__(self, "task_queue", queue_of(self.task_queue))
        object.__setattr__(self, "node", self.node or None)

    def tabs_in(self, window_id: WindowId) -> Sequence[Context]:
        """Return the tabs there are in a window."""
        return Contexts.of(self.contexts).in_window(window_id)

    def worker_windows(self) -> int:
        """Count the windows that take of what was negotiated; a person's do not."""
        return sum(window.owner is Owner.WORKER for window in self.windows.values())

    def used_slots(self) -> int:
        """Count the slots taken: live assignments, and what is reserved for one."""
        opening = self.opening_windows + sum(self.opening_tabs.values()) + self.opening_flows
        return len(self.assignments) + opening + self.reserved_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a decision may look at, read at one moment."""

    taken_at: Instant
    clients: tuple[Client, ...]
    """In order of client_id."""
    presence_window_s: float
    """An agent not heard of for longer is not present."""
    departed: Sequence[Client] = ()
    """Agents that have gone, as they were to be routed to and with nothing they had. Of many that
    were alike one; the latest, where there are too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a task asks for."""

    namespace: Namespace
    task_id: TaskId
    task_queue: str = DEFAULT_QUEUE
    activity_type: str | None = None
    """Only agents that do this kind of work; None is any."""
    node: str | None = None
    """Only agents of this node; None is any, and those of no node."""
    client_type: ClientType | None = None
    requirements: Mapping[str, Any] = field(default_factory=dict)
    affinity_client_id: ClientId | None = None
    identity: str | None = None
    """Work in the window of this identity; None is a window of its own."""
    profile: str = ""
    """Names the options the window must have been opened with."""
    resets: bool = False
    """A window opened for this may be cleaned and lent again, to who asks for this profile."""
    auto_provision: bool = False
    through: str | None = None
    """Only agents whose link this coordinator holds; None is any."""
    placement: BrowserPlacement | None = None
    """None is `dedicated_window` for anonymous work, and else the window of the identity.

    What it says of an identity is `identity` here, named across namespaces.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_queue", queue_of(self.task_queue))

    @property
    def mode(self) -> Mode:
        """Which windows and tabs will do."""
        if self.placement is not None:
            return self.placement.mode
        return Mode.DEDICATED_WINDOW if self.identity is None else Mode.IDENTITY

    @property
    def dedicated(self) -> bool:
        """Tell whether nobody else may have a tab in the window while it is held."""
        if self.placement is not None:
            return self.placement.dedicated
        return self.identity is None
