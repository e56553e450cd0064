"""Why nothing would do: the reasons of agents and contexts, and what they make of the pool (P6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from farm.core.census import (
    FOR_WANT_OF_A_SLOT,
    POOL_VERDICTS,
    Census,
    Declared,
    PoolVerdict,
    classify,
)
from farm.core.eligibility import Reason
from farm.core.model import ClientId, ContextId

ContextKey = tuple[ClientId, ContextId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why nothing would do (P6).

    Every client with its reason, and every context of those that were otherwise eligible.
    """

    clients: Mapping[ClientId, Reason]
    contexts: Mapping[ContextKey, Reason]
    census: Census | None = None
    """Of the same reading; None where it says what became of one creation."""
    queue: Declared = field(default_factory=Declared)
    """What is known of the task queue."""

    @property
    def pool(self) -> PoolVerdict:
        """What is the matter with the pool as a whole."""
        if self.census is not None:
            found = classify(self.queue.declaration, self.census)
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

    def without_strangers(self) -> "Verdict":
        """Return what the namespace that asked may be told: nothing of who does not serve it."""
        ours = {c: r for c, r in self.clients.items() if r is not Reason.OTHER_NAMESPACE}
        return replace(self, clients=ours)

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
        pool = self.pool
        if pool is PoolVerdict.NO_QUEUE_DECLARATION and self.queue.near is not None:
            return f"No such task queue is declared: did you mean {self.queue.near}?"
        return REMEDY_OF_POOL.get(pool) or _REMEDY[self.reason]


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

BECAUSE: Mapping[Reason, str] = {
    Reason.LOST_RACE: "it has room",
    Reason.PLACEMENT_UNKNOWN: "it is not known whether the namespace's work may run on it",
    Reason.CREATION_FAILED: "nothing could be opened on it",
    Reason.AT_CAPACITY: "all its slots are busy",
    Reason.NO_WINDOW_FREE: "it has as many windows as it may",
    Reason.NO_TAB_FREE: "the identity's window is full",
    Reason.NO_FLOW_FREE: "it has as many flows as it may",
    Reason.WINDOW_SHARED: "others have a tab in the window",
    Reason.WINDOW_DEDICATED: "the window is held by one task alone",
    Reason.IDENTITY_ELSEWHERE: "the identity's window is on another agent",
    Reason.NO_SUCH_WINDOW: "it has no such window",
    Reason.OTHER_IDENTITY: "the window is of another identity",
    Reason.OTHER_OPTIONS: "the window was opened with other options",
    Reason.IDENTITY_NOT_NAMED: "a new tab needs the name of an identity",
    Reason.NOT_PROVISIONING_OWNER: "another coordinator creates on it",
    Reason.NO_APP_NODE: "there is no node to create with",
    Reason.NO_BROWSER_WINDOW_REGISTRY: "there is no registry of windows to create with",
    Reason.NO_FLOW_REGISTRY: "there is no registry of flows to create with",
    Reason.CREATION_NOT_PERMITTED: "nothing on it is idle, and nothing may be created",
    Reason.CANNOT_PROVISION_TYPE: "nothing on it is idle, and nothing of its type can be created",
    Reason.CAPACITY_UNANNOUNCED: "it has not said how much it takes",
    Reason.DRAINING: "it is draining",
    Reason.IN_PROBATION: "it has just come and has not answered yet",
    Reason.UNREACHABLE: "it is connected and does not answer",
    Reason.LINKED_ELSEWHERE: "it is linked to another coordinator",
    Reason.ABSENT: "it is not connected, or silent",
    Reason.REQUIREMENTS_NOT_MET: "it has not the metadata that is required",
    Reason.OTHER_CLIENT_TYPE: "it is of another type",
    Reason.OTHER_NODE: "it is on another node, or on none",
    Reason.ACTIVITY_NOT_SERVED: "it does not do this kind of work",
    Reason.OTHER_QUEUE: "it serves another task queue",
    Reason.OTHER_NAMESPACE: "it does not serve the namespace",
}
"""Why one agent would not do."""

REMEDY_OF_POOL: Mapping[PoolVerdict, str] = {
    PoolVerdict.NO_QUEUE_DECLARATION: "No such task queue is declared: correct its name.",
    PoolVerdict.SATURATED: "The agents chosen have not taken it: it is offered again.",
}
"""Of what no reason of an agent stands for."""
