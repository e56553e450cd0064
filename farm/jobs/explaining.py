"""Why jobs wait, in the words that their namespace is told (P6, P16)."""

from collections.abc import Awaitable, Callable

from farm.core.census import Census, PoolVerdict
from farm.core.decide import Verdict
from farm.core.model import Request, Snapshot
from farm.jobs.ports import Waiting

Explain = Callable[[Request], Awaitable[tuple[Snapshot, Verdict]]]
"""Says why a request would get nothing now, with the reading that says it."""


def waiting_for(request: Request, verdict: Verdict) -> Waiting:
    """Return what a miss means to who waits; of agents of other namespaces it says nothing."""
    told = verdict.without_strangers()
    reasons = sorted({reason.value for reason in told.clients.values()})
    detail = f"{len(told.clients)} agents looked at: {', '.join(reasons) or 'none'}"
    if told.pool is PoolVerdict.NO_QUEUE_DECLARATION:
        detail = f"the task queue {request.task_queue} is not declared"
    elif told.census is not None:
        detail = _sentence(request, told.census)
    return Waiting(
        reason="no_agent" if told.reason is None else told.reason.value,
        remedy=told.remedy,
        detail=detail,
        pool=told.pool,
        census=told.census,
        request=request,
    )


def _sentence(request: Request, census: Census) -> str:
    pool = f"the pool {request.task_queue}"
    if census.compatible:
        states = {
            "full": census.at_capacity,
            "silent on their capacity": census.capacity_unannounced,
            "in probation": census.in_probation,
            "unreachable": census.reachability_lost,
            "linked elsewhere": census.linked_elsewhere,
            "draining": census.draining,
        }
        how = ", ".join(f"{count} {state}" for state, count in states.items() if count)
        of = f"of {census.in_pool} agents in {pool} {census.compatible} would do"
        return f"{of}: {how}" if how else f"{of}, and have a slot free"
    there = f"none of {census.in_pool} agents in {pool} would do"
    if not census.in_pool:
        there = f"no agent is in {pool}"
    age_s = census.last_compatible_age_s
    if age_s is None:
        return f"{there}, and none that would has been seen"
    return f"{there}; one that would was last seen {age_s:.0f} s ago"
