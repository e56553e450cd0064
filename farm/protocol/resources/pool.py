"""Who is there, what they have, and whom it is lent to."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime

from farm.protocol.resources.jobs import ProgressView
from farm.protocol.resources.words import Resource


class CapacityView(Resource):
    """What an agent may hold."""

    max_concurrency: int | None = None
    max_windows: int
    max_tabs_per_window: int
    max_flows: int


class DrainView(Resource):
    """That an agent was asked to leave."""

    by: str
    since: AwareDatetime


class AgentView(Resource):
    """One agent."""

    client_id: str
    client_type: str
    present: bool
    """Heard of lately, on a link that is open."""
    excluded: str | None = None
    """Why it is kept out for now: `opening_probation` or `reachability_lost`."""
    draining: bool
    """It takes nothing new."""
    draining_because: str | None = None
    """Why, such as `low_disk`; null where it has been asked to, or does not say."""
    drain: DrainView | None = None
    """Who has asked it to leave, and since when."""
    instance: str = ""
    """One life of the agent's process."""
    deployment: str | None = None
    """What it was rolled out as, in its own words."""
    association: Literal["known", "unknown", "unchecked"] = "unchecked"
    """Whether its deployment is one that was declared; `unchecked` where none is."""
    epoch: int
    browser: str | None = None
    namespaces: tuple[str, ...]
    task_queue: str = "default"
    activity_types: tuple[str, ...] = ()
    """What kinds of work it does."""
    node: str | None = None
    metadata: dict[str, Any]
    capacity: CapacityView
    used_slots: int
    windows: int
    prepared: int = 0
    """How many of the windows were opened before anybody asked, and wait to be lent."""
    contexts: int
    seen_at: AwareDatetime


class AgentList(Resource):
    """The agents, by client_id."""

    items: tuple[AgentView, ...]


class AssignmentView(Resource):
    """What a worker has been lent to."""

    task_id: str
    since: AwareDatetime
    expires_at: AwareDatetime
    job_id: str | None = None
    """None where the task is not a job's attempt."""
    job: str | None = None
    """The job's name."""
    attempt: int | None = None
    progress: ProgressView | None = None


class WorkerView(Resource):
    """One context: a place that work can run."""

    label: str
    """The name people see on it and in logs, such as `W1 · T1`."""
    context_id: str
    client_id: str
    task_queue: str = "default"
    node: str | None = None
    """Where its agent is."""
    window_id: str | None = None
    owner: str
    """`worker`, or `user` for what a person has opened outside all workers' windows."""
    state: str
    clean: bool
    live: str | None = None
    """What it is watched as, at `/v1/live/{live}`, while it is lent."""
    opener: str | None = None
    """The context whose task has opened it, and with which it goes."""
    assignment: AssignmentView | None = None


class WorkerList(Resource):
    """The contexts, by agent."""

    items: tuple[WorkerView, ...]


class BoundsView(Resource):
    """Where a window is on its screen, in pixels."""

    left: int
    top: int
    width: int
    height: int


class WindowView(Resource):
    """One browser window."""

    window_id: str
    client_id: str
    identity: str | None = None
    """None is anonymous."""
    owner: str
    """`worker`, or `user` for one that a person has opened."""
    bounds: BoundsView | None = None
    """Where it is known: in browsers with windows."""
    prepared: bool = False
    """Opened before anybody asked, and not lent yet."""
    contexts: tuple[str, ...]


class WindowList(Resource):
    """The windows, by agent."""

    items: tuple[WindowView, ...]


class MissView(Resource):
    """Why a task was last given no worker."""

    task_id: str
    at: AwareDatetime
    times: int
    """How often in a row, since it is remembered."""
    reason: str
    """What is nearest to a success, such as `at_capacity`; `no_agent` where nobody is there."""
    remedy: str
    counts: dict[str, int]
    """How many agents had which reason."""
    clients: dict[str, str]
    """The reason of each agent, of the first hundred."""


class MissList(Resource):
    """The tasks that were last given no worker, the latest first."""

    items: tuple[MissView, ...]
