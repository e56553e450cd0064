"""Pools, what waits for them and why, as the bodies the API gives."""

from dataclasses import asdict
from typing import Any

from farm.api.views import moment
from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import Instant, Request
from farm.core.verdicts import BECAUSE
from farm.jobs.pools import Pool
from farm.jobs.ports import Waiting
from farm.jobs.why import Unserved, Why
from farm.protocol.resources import (
    AddressView,
    AgentReasonView,
    CensusView,
    PoolView,
    UnservedView,
    VerdictView,
    WaitingJobView,
    WhyView,
)


def pool_view(pool: Pool) -> PoolView:
    """Convert a pool."""
    return PoolView(
        task_queue=pool.task_queue,
        activity_types=tuple(sorted({a for c in pool.clients for a in c.activity_types})),
        nodes=tuple(sorted({c.node for c in pool.clients if c.node is not None})),
        agents=len(pool.clients),
        draining=sum(client.draining for client in pool.clients),
        slots=pool.slots,
        slots_used=pool.slots_used,
        slots_free=pool.slots_free,
        queued=pool.queued,
        verdict=None if pool.waiting is None else _verdict_view(pool.waiting),
    )


def unserved_view(unserved: Unserved, now: Instant) -> UnservedView:
    """Convert what waits, as it is now."""
    waiting, queued = unserved.waiting, unserved.jobs
    return UnservedView(
        **_verdict_members(waiting),
        address=None if waiting.request is None else _address_view(waiting.request),
        since=moment(unserved.since),
        age_s=max(0.0, now - unserved.since),
        count=queued.count,
        jobs=tuple(
            WaitingJobView(id=job.job_id, name=job.name, created_at=moment(job.created_at))
            for job in queued.jobs
        ),
    )


def why_view(why: Why) -> WhyView:
    """Convert why a job has not begun."""
    return WhyView(
        id=why.job.job_id,
        state=why.job.state.value,
        detail=_detail(why),
        position=why.position,
        verdict=None if why.waiting is None else _verdict_view(why.waiting),
        agents=tuple(
            AgentReasonView(client_id=client_id, reason=reason.value, detail=BECAUSE[reason])
            for client_id, reason in (why.agents or {}).items()
        ),
        begins_within_s=why.begins_within_s,
    )


def _detail(why: Why) -> str:
    job = why.job
    if job.state is JobState.UNCERTAIN:
        return "it is uncertain, and waits for a decision: farm jobs resolve"
    if job.state is not JobState.QUEUED:
        return f"it runs on {why.runs_on}" if why.runs_on else f"it has ended: {job.state.value}"
    if job.control is not Control.AUTOMATION:
        return f"it is paused by {job.control_by}" if job.control_by else "it is paused"
    if why.waiting is not None:
        return why.waiting.detail
    if why.position is None:
        return f"it is not to begin before {moment(job.not_before):%Y-%m-%d %H:%M:%S} UTC"
    return "nobody has looked at it yet"


def _verdict_view(waiting: Waiting) -> VerdictView:
    return VerdictView(**_verdict_members(waiting))


def _verdict_members(waiting: Waiting) -> dict[str, Any]:
    return {
        "verdict": waiting.pool.value,
        "structural": waiting.pool.structural,
        "reason": waiting.reason,
        "detail": waiting.detail,
        "remedy": waiting.remedy,
        "census": None if waiting.census is None else CensusView(**asdict(waiting.census)),
    }


def _address_view(request: Request) -> AddressView:
    return AddressView(
        namespace=request.namespace,
        task_queue=request.task_queue,
        activity_type=request.activity_type,
        node=request.node,
        client_type=None if request.client_type is None else request.client_type.value,
    )
