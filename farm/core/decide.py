"""Eligibility and placement as pure functions over a snapshot (P3, P6).

A success looks only at what it needs; reasons are built only where nothing would do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from farm.core.census import (
    FOR_WANT_OF_A_SLOT,
    POOL_VERDICTS,
    Census,
    Declaration,
    PoolVerdict,
    census,
    classify,
)
from farm.core.eligibility import Reason, reject_client, reject_context
from farm.core.model import (
    Client,
    ClientId,
    Context,
    ContextId,
    Request,
    Snapshot,
)
from farm.core.placement import MUST_CREATE, Means
from farm.core.sites import Need, Site, in_order, site_on, tabs_in
from farm.core.tiers import Tier, among

ContextKey = tuple[ClientId, ContextId]
_EVERYTHING = Means()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An idle context that will do, with what a strategy may look at. Told apart by its ids."""

    client_id: ClientId
    context_id: ContextId
    request: Request = field(compare=False, repr=False)
    client: Client = field(compare=False, repr=False)
    context: Context = field(compare=False, repr=False)

    @property
    def key(self) -> ContextKey:
        """The ids, in the order in which candidates are sorted."""
        return self.client_id, self.context_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why nothing would do (P6).

    Every client with its reason, and every context of those that were otherwise eligible.
    """

    clients: Mapping[ClientId, Reason]
    contexts: Mapping[ContextKey, Reason]
    census: Census | None = None
    """Of the same reading; None where it says what became of one creation."""
    declaration: Declaration = Declaration.UNKNOWN
    """What is known of the task queue."""

    @property
    def pool(self) -> PoolVerdict:
        """What is the matter with the pool as a whole."""
        if self.census is not None:
            found = classify(self.declaration, self.census)
            if found is not PoolVerdict.SERVED_RACED:
                return found
        said = [POOL_VERDICTS[reason] for reason in self._by_nearness()]
        within = (verdict for verdict in said if verdict not in FOR_WANT_OF_A_SLOT)
        return next(within, said[0] if said else PoolVerdict.NO_LIVE_POLLERS)

    @property
    def reason(self) -> Reason | None:
        """The reason nearest to a success, of those that make the pool's verdict.

        None: nobody is there.
        """
        pool = self.pool
        return next((r for r in self._by_nearness() if POOL_VERDICTS[r] is pool), None)

    def _by_nearness(self) -> list[Reason]:
        found = set(self.clients.values())
        return [reason for reason in _NEAREST if reason in found]

    @property
    def somebody(self) -> bool:
        """Tell whether an agent is there that would do, once it has room."""
        return any(reason not in _NOBODY for reason in self.clients.values())

    @property
    def remedy(self) -> str:
        """One sentence on what would help."""
        return _REMEDY_OF_POOL.get(self.pool) or _REMEDY[self.reason]


_NOBODY = frozenset(
    {
        Reason.OTHER_NAMESPACE,
        Reason.OTHER_QUEUE,
        Reason.ACTIVITY_NOT_SERVED,
        Reason.OTHER_NODE,
        Reason.OTHER_CLIENT_TYPE,
        Reason.REQUIREMENTS_NOT_MET,
        Reason.ABSENT,
        Reason.LINKED_ELSEWHERE,
        Reason.UNREACHABLE,
        Reason.DRAINING,
    }
)
"""Reasons for which an agent would not do, however much room it had."""

_NEAREST: tuple[Reason, ...] = (
    Reason.LOST_RACE,
    Reason.PLACEMENT_UNKNOWN,
    Reason.CREATION_FAILED,
    Reason.AT_CAPACITY,
    Reason.NO_WINDOW_FREE,
    Reason.NO_TAB_FREE,
    Reason.NO_FLOW_FREE,
    Reason.WINDOW_SHARED,
    Reason.WINDOW_DEDICATED,
    Reason.IDENTITY_ELSEWHERE,
    Reason.NO_SUCH_WINDOW,
    Reason.OTHER_IDENTITY,
    Reason.OTHER_OPTIONS,
    Reason.IDENTITY_NOT_NAMED,
    Reason.NOT_PROVISIONING_OWNER,
    Reason.NO_APP_NODE,
    Reason.NO_BROWSER_WINDOW_REGISTRY,
    Reason.NO_FLOW_REGISTRY,
    Reason.CREATION_NOT_PERMITTED,
    Reason.CANNOT_PROVISION_TYPE,
    Reason.CAPACITY_UNANNOUNCED,
    Reason.DRAINING,
    Reason.IN_PROBATION,
    Reason.UNREACHABLE,
    Reason.LINKED_ELSEWHERE,
    Reason.ABSENT,
    Reason.REQUIREMENTS_NOT_MET,
    Reason.OTHER_CLIENT_TYPE,
    Reason.OTHER_NODE,
    Reason.ACTIVITY_NOT_SERVED,
    Reason.OTHER_QUEUE,
    Reason.OTHER_NAMESPACE,
)

_REMEDY: Mapping[Reason | None, str] = {
    None: "No agent is connected: start one with `farm-agent` or `farm up`.",
    Reason.LOST_RACE: "Others were quicker; it is tried again.",
    Reason.PLACEMENT_UNKNOWN: "Where the namespace's work may run can't be read now: wait for it.",
    Reason.CREATION_FAILED: "A window could not be opened; see the agent's log.",
    Reason.AT_CAPACITY: "All slots are busy: wait, or add agents.",
    Reason.NO_WINDOW_FREE: "All windows are in use: wait, or raise AGENT_MAX_WINDOWS.",
    Reason.NO_TAB_FREE: "The identity's window is full: wait, or raise AGENT_MAX_TABS_PER_WINDOW.",
    Reason.NO_FLOW_FREE: "The agent has as many flows as it may: wait, or raise AGENT_MAX_FLOWS.",
    Reason.WINDOW_SHARED: "Others have a tab in the window: wait until they have left.",
    Reason.WINDOW_DEDICATED: "The window is held by one task alone: wait for it.",
    Reason.IDENTITY_ELSEWHERE: "Another agent holds this identity's window: wait for it.",
    Reason.NO_SUCH_WINDOW: "There is no such window; a mode that opens one would do.",
    Reason.OTHER_IDENTITY: "The window named is of another identity: name that too.",
    Reason.OTHER_OPTIONS: "The identity's window was opened with other options: ask for those.",
    Reason.IDENTITY_NOT_NAMED: "A new tab shares its window's identity: name that identity.",
    Reason.NOT_PROVISIONING_OWNER: "Another coordinator creates here: ask that one, or wait.",
    Reason.NO_APP_NODE: "The manager has no app_node to create with: construct it with one.",
    Reason.NO_BROWSER_WINDOW_REGISTRY: (
        "The manager has no browser_window_registry to create with: construct it with one."
    ),
    Reason.NO_FLOW_REGISTRY: "The manager's registries reserve no flows: use one that does.",
    Reason.CREATION_NOT_PERMITTED: "Nothing is idle and the request does not allow creation.",
    Reason.CANNOT_PROVISION_TYPE: "Contexts of this type can't be created: connect an idle one.",
    Reason.CAPACITY_UNANNOUNCED: "The agent has not said how much it takes: set AGENT_SLOTS.",
    Reason.DRAINING: "Every agent that would do is draining: start another.",
    Reason.IN_PROBATION: "The agent has just come and has not answered yet: wait for seconds.",
    Reason.UNREACHABLE: "Every agent that would do has ceased to answer: check the network to it.",
    Reason.LINKED_ELSEWHERE: (
        "Every agent that would do is linked to another coordinator: connect one to this."
    ),
    Reason.ABSENT: "Every agent that would do has gone silent: check that it runs.",
    Reason.REQUIREMENTS_NOT_MET: (
        "No agent has the required metadata: set AGENT_METADATA on one; for video, give it ffmpeg."
    ),
    Reason.OTHER_CLIENT_TYPE: (
        "No agent is of the type asked for: tabs come with `farm-agent`, flows with"
        " `farm-agent --type console`."
    ),
    Reason.OTHER_NODE: "No agent of the pool is on this node: start one there, with AGENT_NODE.",
    Reason.ACTIVITY_NOT_SERVED: (
        "No agent of the pool does this kind of work: name it in AGENT_ACTIVITY_TYPES of one."
    ),
    Reason.OTHER_QUEUE: (
        "No agent serves this task queue: start one with AGENT_TASK_QUEUE, or correct the name."
    ),
    Reason.OTHER_NAMESPACE: "No agent serves this namespace.",
}

_REMEDY_OF_POOL: Mapping[PoolVerdict, str] = {
    PoolVerdict.NO_QUEUE_DECLARATION: "No such task queue is declared: correct its name.",
    PoolVerdict.SATURATED: "The agents chosen have not taken it: it is offered again.",
}
"""Of what no reason of an agent stands for."""


def each_candidate(request: Request, snapshot: Snapshot) -> Iterator[Candidate]:
    """Yield the idle contexts that will do, in the order in which to try them.

    The affinity client's come first. What is not asked for is not looked at.
    """
    if request.mode in MUST_CREATE:
        return
    for client in _one_after_another(request, snapshot):
        for context_id in sorted(client.contexts):
            context = client.contexts[context_id]
            if reject_context(request, client, context) is None:
                yield Candidate(
                    client_id=client.client_id,
                    context_id=context_id,
                    request=request,
                    client=client,
                    context=context,
                )


def candidates(request: Request, snapshot: Snapshot) -> list[Candidate]:
    """Return the idle contexts that will do, the affinity client's first, then in order of id."""
    found = each_candidate(request, snapshot)
    return sorted(found, key=lambda c: (c.client_id != request.affinity_client_id, c.key))


def sites(request: Request, snapshot: Snapshot, means: Means = _EVERYTHING) -> list[Site]:
    """Return where a context may be created, in the order in which to try them."""
    if not request.auto_provision:
        return []
    found = [
        site_on(request, client, snapshot.clients, means)
        for client in in_order(request, _eligible(request, snapshot))
    ]
    return [site for site in found if isinstance(site, Site)]


def explain(
    request: Request,
    snapshot: Snapshot,
    means: Means = _EVERYTHING,
    walked: Sequence[Tier] | None = None,
) -> Verdict:
    """Say for each client, and each context looked at, why it would not do.

    What would have done, and yet was not had, is said to have been lost to others. Each client is
    told of once, also where it was asked in several of the tiers `walked`; by default the request
    was tried as it is.
    """
    walked = (request.node,) if walked is None else walked
    clients: dict[ClientId, Reason] = {}
    contexts: dict[ContextKey, Reason] = {}
    fitting = Reason.MUST_BE_NEW if request.mode in MUST_CREATE else Reason.LOST_RACE
    for client in snapshot.clients:
        asked = among(request, walked, client)
        reason = _reject(asked, client, snapshot)
        if reason is not None:
            clients[client.client_id] = reason
            continue
        for context_id, context in client.contexts.items():
            contexts[client.client_id, context_id] = (
                reject_context(asked, client, context) or fitting
            )
        site = site_on(asked, client, snapshot.clients, means)
        clients[client.client_id] = site if isinstance(site, Reason) else Reason.LOST_RACE
    return Verdict(clients=clients, contexts=contexts, census=census(request, snapshot, walked))


def _reject(request: Request, client: Client, snapshot: Snapshot) -> Reason | None:
    return reject_client(
        request, client, now=snapshot.taken_at, window_s=snapshot.presence_window_s
    )


def _one_after_another(request: Request, snapshot: Snapshot) -> Iterator[Client]:
    """Yield the eligible clients; to find the first, the others are not looked at.

    Only who says how agents are to be filled has all of them compared.
    """
    if request.placement is not None:
        yield from in_order(request, _eligible(request, snapshot))
        return
    near = request.affinity_client_id
    if near is not None:
        yield from (
            c for c in snapshot.clients if c.client_id == near and _fits(request, c, snapshot)
        )
    yield from (c for c in snapshot.clients if c.client_id != near and _fits(request, c, snapshot))


def _fits(request: Request, client: Client, snapshot: Snapshot) -> bool:
    return _reject(request, client, snapshot) is None


def _eligible(request: Request, snapshot: Snapshot) -> list[Client]:
    return [c for c in snapshot.clients if _fits(request, c, snapshot)]


__all__ = [
    "Candidate",
    "ContextKey",
    "Need",
    "Site",
    "Verdict",
    "candidates",
    "each_candidate",
    "explain",
    "sites",
    "tabs_in",
]
