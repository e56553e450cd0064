"""Pools, what waits for them, and why."""

from __future__ import annotations

from pydantic import AwareDatetime

from farm.protocol.resources.words import Resource


class CensusView(Resource):
    """The agents at one moment; each of the first four counts is part of the one before."""

    in_pool: int
    """Connected agents of the namespace and the task queue."""
    serving_activity: int
    """And that do this kind of work."""
    compatible: int
    """And of the node, the type and the metadata asked for."""
    eligible_compatible: int
    """And within reach, proven and not draining; full ones are among them."""
    reachability_lost: int
    in_probation: int
    linked_elsewhere: int
    draining: int
    at_capacity: int
    capacity_unannounced: int
    last_compatible_age_s: float | None = None
    """0 while a compatible one is there, else since when none is; null: there never was one."""


class VerdictView(Resource):
    """What is the matter, of one reading."""

    verdict: str
    """Such as `pollers_at_capacity`; see docs/routing.md."""
    structural: bool
    """Waiting can't help: what is asked for has to be changed."""
    reason: str
    """What is nearest to a success, such as `no_window_free`."""
    detail: str
    """One sentence."""
    remedy: str | None = None
    """One sentence on what would help."""
    census: CensusView | None = None
    """Null where no agent was looked at."""


class PoolView(Resource):
    """A task queue of the namespace, with who serves it now."""

    task_queue: str
    activity_types: tuple[str, ...]
    nodes: tuple[str, ...]
    agents: int
    """Those that are connected."""
    draining: int
    slots: int
    slots_used: int
    slots_free: int
    """Of agents that take work."""
    queued: int
    """Jobs that may begin and have not."""
    verdict: VerdictView | None = None
    """What a job without any demands would be told; null where it would begin."""


class PoolList(Resource):
    """The pools, by task queue."""

    items: tuple[PoolView, ...]


class AddressView(Resource):
    """What is asked for."""

    namespace: str
    task_queue: str
    activity_type: str | None = None
    node: str | None = None
    client_type: str | None = None


class WaitingJobView(Resource):
    """One job that waits."""

    id: str
    name: str
    created_at: AwareDatetime


class UnservedView(VerdictView):
    """Jobs that ask for the same, which nobody can take now."""

    address: AddressView | None = None
    """Null where they wait for an identity, and no agent has been asked."""
    since: AwareDatetime | None = None
    """When the oldest of them was to begin."""
    age_s: float
    count: int
    jobs: tuple[WaitingJobView, ...]
    """The oldest twenty, the oldest first."""


class UnservedList(Resource):
    """What waits, that with the oldest job first."""

    items: tuple[UnservedView, ...]


class AgentReasonView(Resource):
    """Why one agent does not take the job."""

    client_id: str
    reason: str
    detail: str


class WhyView(Resource):
    """Why a job has not begun, or what it does instead of waiting."""

    id: str
    state: str
    detail: str
    """One sentence."""
    position: int | None = None
    """Among the jobs that ask for the same, from 1; null where it is not in the queue."""
    verdict: VerdictView | None = None
    """Null where it does not wait for an agent, or nobody has looked yet."""
    agents: tuple[AgentReasonView, ...] = ()
    begins_within_s: float | None = None
    """If those before it take as long as the latest did; null where that can't be said."""
