"""Eligibility and placement as one pure function over a snapshot (P3, P6).

A success looks only at what it needs; reasons are built only where nothing would do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from farm.core.eligibility import Reason, reject_client, reject_context
from farm.core.model import (
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Owner,
    Request,
    Snapshot,
    WindowId,
)


class Need(StrEnum):
    """What has to be created for a request."""

    TAB = "tab"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An idle context that will do."""

    client_id: ClientId
    context_id: ContextId


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A client on which a context may be created."""

    client_id: ClientId
    need: Need
    window_id: WindowId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why nothing would do (P6).

    Every client with its reason, and every context of those that were otherwise eligible.
    """

    clients: Mapping[ClientId, Reason]
    contexts: Mapping[tuple[ClientId, ContextId], Reason]

    @property
    def reason(self) -> Reason | None:
        """The reason nearest to a success: what would have to change first. None: nobody there."""
        found = set(self.clients.values())
        return next((r for r in _NEAREST if r in found), None)

    @property
    def remedy(self) -> str:
        """One sentence on what would help."""
        return _REMEDY[self.reason]


_NEAREST: tuple[Reason, ...] = (
    Reason.LOST_RACE,
    Reason.CREATION_FAILED,
    Reason.AT_CAPACITY,
    Reason.NO_WINDOW_FREE,
    Reason.NO_TAB_FREE,
    Reason.IDENTITY_ELSEWHERE,
    Reason.CREATION_NOT_PERMITTED,
    Reason.CANNOT_PROVISION_TYPE,
    Reason.CAPACITY_UNANNOUNCED,
    Reason.DRAINING,
    Reason.ABSENT,
    Reason.REQUIREMENTS_NOT_MET,
    Reason.OTHER_CLIENT_TYPE,
    Reason.OTHER_NAMESPACE,
)

_REMEDY: Mapping[Reason | None, str] = {
    None: "No agent is connected: start one with `farm-agent` or `farm up`.",
    Reason.LOST_RACE: "Others were quicker; it is tried again.",
    Reason.CREATION_FAILED: "A window could not be opened; see the agent's log.",
    Reason.AT_CAPACITY: "All slots are busy: wait, or add agents.",
    Reason.NO_WINDOW_FREE: "All windows are in use: wait, or raise AGENT_MAX_WINDOWS.",
    Reason.NO_TAB_FREE: "The identity's window is full: wait, or raise AGENT_MAX_TABS_PER_WINDOW.",
    Reason.IDENTITY_ELSEWHERE: "Another agent holds this identity's window: wait for it.",
    Reason.CREATION_NOT_PERMITTED: "Nothing is idle and the request does not allow creation.",
    Reason.CANNOT_PROVISION_TYPE: "Contexts of this type can't be created: connect an idle one.",
    Reason.CAPACITY_UNANNOUNCED: "The agent has not said how much it takes: set AGENT_SLOTS.",
    Reason.DRAINING: "Every agent that would do is draining: start another.",
    Reason.ABSENT: "Every agent that would do has gone silent: check that it runs.",
    Reason.REQUIREMENTS_NOT_MET: "No agent has the required metadata: set AGENT_METADATA on one.",
    Reason.OTHER_CLIENT_TYPE: "No agent is of the type asked for.",
    Reason.OTHER_NAMESPACE: "No agent serves this namespace.",
}


def candidates(request: Request, snapshot: Snapshot) -> list[Candidate]:
    """Return the idle contexts that will do, the affinity client's first, then in order of id."""
    found = [
        Candidate(client_id=client.client_id, context_id=context_id)
        for client in _eligible(request, snapshot)
        for context_id, context in client.contexts.items()
        if reject_context(request, client, context) is None
    ]
    return sorted(
        found, key=lambda c: (c.client_id != request.affinity_client_id, c.client_id, c.context_id)
    )


def sites(request: Request, snapshot: Snapshot) -> list[Site]:
    """Return where a context may be created: the affinity client first, then the emptiest."""
    if not request.auto_provision:
        return []
    found: list[tuple[bool, float, Site]] = []
    for client in _eligible(request, snapshot):
        site = _site(request, client, snapshot)
        if isinstance(site, Site):
            load = client.used_slots() / (client.capacity.max_concurrency or 1)
            found.append((client.client_id != request.affinity_client_id, load, site))
    return [site for _, _, site in sorted(found, key=lambda f: (f[0], f[1], f[2].client_id))]


def explain(request: Request, snapshot: Snapshot) -> Verdict:
    """Say for each client, and each context looked at, why it would not do."""
    clients: dict[ClientId, Reason] = {}
    contexts: dict[tuple[ClientId, ContextId], Reason] = {}
    for client in snapshot.clients:
        reason = _reject(request, client, snapshot)
        if reason is not None:
            clients[client.client_id] = reason
            continue
        for context_id, context in client.contexts.items():
            contexts[client.client_id, context_id] = (
                reject_context(request, client, context) or Reason.LOST_RACE
            )
        site = _site(request, client, snapshot)
        clients[client.client_id] = site if isinstance(site, Reason) else Reason.LOST_RACE
    return Verdict(clients=clients, contexts=contexts)


def _reject(request: Request, client: Client, snapshot: Snapshot) -> Reason | None:
    return reject_client(
        request, client, now=snapshot.taken_at, window_s=snapshot.presence_window_s
    )


def _eligible(request: Request, snapshot: Snapshot) -> list[Client]:
    return [c for c in snapshot.clients if _reject(request, c, snapshot) is None]


def _site(request: Request, client: Client, snapshot: Snapshot) -> Site | Reason:
    if not request.auto_provision:
        return Reason.CREATION_NOT_PERMITTED
    if client.client_type is not ClientType.BROWSER:
        return Reason.CANNOT_PROVISION_TYPE
    if request.identity is not None:
        window_id = _window_of(request.identity, client)
        if window_id is not None:
            return _tab_site(client, window_id)
        if _held_elsewhere(request.identity, snapshot):
            return Reason.IDENTITY_ELSEWHERE
    if len(client.windows) + client.opening_windows >= client.capacity.max_windows:
        return Reason.NO_WINDOW_FREE
    return Site(client_id=client.client_id, need=Need.WINDOW)


def _tab_site(client: Client, window_id: WindowId) -> Site | Reason:
    if tabs_in(client, window_id) >= client.capacity.max_tabs_per_window:
        return Reason.NO_TAB_FREE
    return Site(client_id=client.client_id, need=Need.TAB, window_id=window_id)


def tabs_in(client: Client, window_id: WindowId) -> int:
    """Count the tabs of a window, those being created included."""
    there = sum(_is_in(context, window_id) for context in client.contexts.values())
    return there + client.opening_tabs.get(window_id, 0)


def _is_in(context: Context, window_id: WindowId) -> bool:
    return context.window_id == window_id


def _window_of(identity: str, client: Client) -> WindowId | None:
    for window in client.windows.values():
        if window.identity == identity and window.owner is Owner.WORKER:
            return window.window_id
    return None


def _held_elsewhere(identity: str, snapshot: Snapshot) -> bool:
    # An identity's cookies live in one window; while that exists (or is being made), a second
    # window under the same name would be another identity.
    return any(
        _window_of(identity, client) is not None or identity in client.opening_identities
        for client in snapshot.clients
    )
