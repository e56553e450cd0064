"""Records of the ledger and values of the registry, as the bodies the API gives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from farm.api.live.places import live_id
from farm.core import eligibility
from farm.core.control import Control
from farm.core.job_states import AT_REST
from farm.core.model import Client, ClientType, Context, Instant, Snapshot, Window
from farm.jobs.ports import Progress, Waiting
from farm.jobs.readings import Reading
from farm.protocol.failures import Failure
from farm.protocol.resources import (
    AgentView,
    ArtifactView,
    AssignmentView,
    AttemptView,
    BoundsView,
    CapacityView,
    ControlView,
    DrainView,
    EffectView,
    EventView,
    JobDetail,
    JobView,
    NoticeView,
    ProgressView,
    StepTiming,
    WaitingView,
    WindowView,
    WorkerView,
)
from farm.stores.ports.deployments import Deployment, association
from farm.stores.records import Artifact, Attempt, Effect, Job, JobEvent, JobRecord

_MAX_NOTICES = 50


def moment(instant: Instant) -> datetime:
    """Return an instant as a date and time in UTC."""
    return datetime.fromtimestamp(instant, UTC)


def maybe_moment(instant: Instant | None) -> datetime | None:
    """Return an instant as a date and time in UTC, if there is one."""
    return None if instant is None else moment(instant)


def _failure(failure: Mapping[str, Any] | None) -> Failure | None:
    return None if failure is None else Failure.model_validate(failure)


def progress_view(progress: Progress | None) -> ProgressView | None:
    """Convert what a running job does."""
    if progress is None:
        return None
    return ProgressView(
        step_index=progress.step_index,
        step=progress.step,
        verb=progress.verb,
        steps=progress.steps,
    )


def _waiting_view(waiting: Waiting | None) -> WaitingView | None:
    if waiting is None:
        return None
    return WaitingView(reason=waiting.reason, remedy=waiting.remedy, detail=waiting.detail)


def _control_view(job: Job) -> ControlView | None:
    if job.control is Control.AUTOMATION:
        return None
    return ControlView(state=job.control.value, by=job.control_by, asked=job.asked)


def job_members(job: Job, reading: Reading) -> dict[str, Any]:
    """Return the members every view of a job has."""
    return {
        "id": job.job_id,
        "name": job.name,
        "namespace": job.namespace,
        "state": job.state.value,
        "at_rest": job.state in AT_REST,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "cancel_requested": job.cancel_requested,
        "control": _control_view(job),
        "idempotency_key": job.idempotency_key,
        "failure": _failure(job.failure),
        "created_at": moment(job.created_at),
        "not_before": moment(job.not_before) if job.not_before > job.created_at else None,
        "started_at": maybe_moment(job.started_at),
        "finished_at": maybe_moment(job.finished_at),
        "item_count": job.item_count,
        "artifact_count": job.artifact_count,
        "waiting": _waiting_view(reading.waiting),
        "progress": progress_view(reading.progress),
    }


def job_view(job: Job, reading: Reading) -> JobView:
    """Convert a job for a list."""
    return JobView(**job_members(job, reading))


def job_detail(record: JobRecord, reading: Reading) -> JobDetail:
    """Convert a job with its whole history."""
    events = record.events
    return JobDetail(
        **job_members(record.job, reading),
        history=tuple(
            attempt_view(a, [e for e in events if e.attempt_id == a.attempt_id])
            for a in record.attempts
        ),
        effects=tuple(effect_view(effect) for effect in record.effects),
        notices=notice_views(events, {a.attempt_id: a.number for a in record.attempts}),
    )


def notice_views(events: Iterable[JobEvent], numbers: Mapping[str, int]) -> tuple[NoticeView, ...]:
    """Gather a job's notices by their code; `numbers` are those of its attempts, by id."""
    found: dict[str, NoticeView] = {}
    for event in events:
        if event.type != "notice":
            continue
        code = event.data["code"]
        before = found.pop(code, None)
        found[code] = NoticeView(
            code=code,
            count=1 if before is None else before.count + 1,
            detail=event.data["detail"],
            attempt=numbers.get(event.attempt_id or ""),
            step_index=event.data.get("index"),
            at=moment(event.at),
        )
    return tuple(reversed(found.values()))[:_MAX_NOTICES]


def attempt_view(attempt: Attempt, events: Iterable[JobEvent]) -> AttemptView:
    """Convert an attempt; window and steps are read off its events."""
    window: str | None = None
    steps: dict[int, StepTiming] = {}
    for event in events:
        match event.type:
            case "started":
                window = event.data.get("window_id")
            case "step_started":
                steps[event.data["index"]] = _begun(event)
            case "step_ended" if event.data["index"] in steps:
                steps[event.data["index"]] = _ended(steps[event.data["index"]], event)
            case _:
                pass
    return AttemptView(
        id=attempt.attempt_id,
        number=attempt.number,
        state=attempt.state.value,
        command_id=attempt.command_id,
        agent=attempt.client_id,
        window=window,
        context=attempt.context_id,
        started_at=moment(attempt.started_at),
        ended_at=maybe_moment(attempt.ended_at),
        failure=_failure(attempt.failure),
        item_count=attempt.item_count,
        steps=tuple(steps.values()),
    )


def _begun(event: JobEvent) -> StepTiming:
    return StepTiming(
        index=event.data["index"],
        step=event.data["label"],
        verb=event.data["verb"],
        started_at=moment(event.at),
    )


def _ended(step: StepTiming, event: JobEvent) -> StepTiming:
    skipped = _failure(event.data.get("skipped"))
    return step.model_copy(update={"ms": event.data["ms"], "skipped": skipped})


def effect_view(effect: Effect) -> EffectView:
    """Convert an effect."""
    return EffectView(
        id=effect.effect_id,
        attempt_id=effect.attempt_id,
        step_index=effect.step_index,
        effect="idempotent" if effect.effect == "idempotent" else "once",
        observed=effect.observed,
        method=effect.method,
        url=effect.url,
        begun_at=moment(effect.begun_at),
        done_at=maybe_moment(effect.done_at),
    )


def event_view(event: JobEvent) -> EventView:
    """Convert one line of a job's history."""
    return EventView(
        seq=event.seq,
        type=event.type,
        at=moment(event.at),
        attempt_id=event.attempt_id,
        data=dict(event.data),
    )


def artifact_view(artifact: Artifact) -> ArtifactView:
    """Convert what is known of a file."""
    return ArtifactView(
        name=artifact.name,
        size=artifact.size,
        sha256=artifact.sha256,
        media_type=artifact.media_type,
        attempt_id=artifact.attempt_id,
        created_at=moment(artifact.created_at),
        recording=artifact.recording,
        state=artifact.state.value,
        detail=artifact.detail,
    )


def is_present(client: Client, snapshot: Snapshot) -> bool:
    """Tell whether an agent was heard of lately, on a link that is open (P2)."""
    return eligibility.is_present(
        client, now=snapshot.taken_at, window_s=snapshot.presence_window_s
    )


def agent_view(client: Client, snapshot: Snapshot, declared: Sequence[Deployment]) -> AgentView:
    """Convert an agent, for a namespace that has declared these deployments."""
    capacity = client.capacity
    return AgentView(
        client_id=client.client_id,
        client_type=client.client_type.value,
        present=is_present(client, snapshot),
        excluded=None if client.excluded is None else client.excluded.value,
        draining=client.draining,
        draining_because=client.draining_because or None,
        drain=None
        if client.drain is None
        else DrainView(by=client.drain.by, since=moment(client.drain.since)),
        instance=client.instance,
        deployment=client.deployment,
        association=association(client.deployment, declared).value,
        epoch=client.epoch,
        browser=client.browser,
        namespaces=client.namespaces,
        task_queue=client.task_queue,
        activity_types=tuple(sorted(client.activity_types)),
        node=client.node,
        metadata=dict(client.metadata),
        capacity=CapacityView(
            max_concurrency=capacity.max_concurrency,
            max_windows=capacity.max_windows,
            max_tabs_per_window=capacity.max_tabs_per_window,
            max_flows=capacity.max_flows,
        ),
        used_slots=client.used_slots(),
        windows=len(client.windows),
        prepared=sum(window.prepared for window in client.windows.values()),
        contexts=len(client.contexts),
        seen_at=moment(client.seen_at),
    )


def worker_view(
    client: Client, context: Context, *, assignment: AssignmentView | None
) -> WorkerView:
    """Convert a context."""
    where, watchable = context.window_id, client.client_type is ClientType.BROWSER
    return WorkerView(
        label=context.context_id if where is None else f"{where} · {context.context_id}",
        context_id=context.context_id,
        client_id=client.client_id,
        task_queue=client.task_queue,
        node=client.node,
        window_id=context.window_id,
        owner=context.owner.value,
        state=context.state.value,
        clean=context.clean,
        live=live_id(client, context.context_id) if watchable and assignment else None,
        opener=context.opener,
        assignment=assignment,
    )


def window_view(client: Client, window: Window) -> WindowView:
    """Convert a window."""
    return WindowView(
        window_id=window.window_id,
        client_id=client.client_id,
        identity=window.identity,
        owner=window.owner.value,
        bounds=None if window.bounds is None else BoundsView(**asdict(window.bounds)),
        prepared=window.prepared,
        contexts=tuple(
            context.context_id
            for context in client.contexts.values()
            if context.window_id == window.window_id
        ),
    )
