"""What people do to jobs: hold, cancel, decide, run again."""

from sqlalchemy import Connection, bindparam, select

from farm.core.control import Control
from farm.core.job_states import TERMINAL, IllegalTransitionError, JobEvent, JobState, step
from farm.core.model import Instant, Namespace
from farm.core.retry import Bar, Doubt, EffectMark, bar
from farm.errors import ConflictError, NotFoundError
from farm.stores.ledger import history, schema
from farm.stores.ledger.jobs import BY_ID
from farm.stores.ledger.rows import AnyRow, to_job
from farm.stores.records import Controlled, Job

_jobs, _attempts, _effects = schema.jobs, schema.attempts, schema.effects

_LOCKED = BY_ID.with_for_update()
_MOVE = schema.CHANGE_JOB.values(
    state=bindparam("state"),
    cancel_requested=bindparam("cancel_requested"),
    not_before=bindparam("not_before"),
    finished_at=bindparam("finished_at"),
    failure=bindparam("failure"),
    control=bindparam("control"),
    control_by=bindparam("control_by"),
    last_event=_jobs.c.last_event + 1,
).returning(*_jobs.c)
_HOLD = schema.CHANGE_JOB.values(
    control=bindparam("control"),
    control_by=bindparam("control_by"),
    last_event=_jobs.c.last_event + 1,
).returning(*_jobs.c)


def hold_queued(
    connection: Connection,
    namespace: Namespace,
    job_id: str,
    to: Controlled,
    now: Instant,
) -> Job | None:
    """Pause or resume a job in the queue; None where it is not there."""
    row = _locked(connection, namespace, job_id)
    if JobState(row.state) is not JobState.QUEUED:
        return None
    if row.control == to.control.value:
        return to_job(row)
    paused = to.control is Control.PAUSED
    held = connection.execute(
        _HOLD,
        {
            "b_number": row.number,
            "control": to.control.value,
            "control_by": to.by if paused else "",
        },
    ).one()
    line = ("paused" if paused else "resumed", {"by": to.by}, now)
    history.append(connection, row.number, row.last_event, [line], attempt_id=None)
    return to_job(held)


def request_cancel(
    connection: Connection, namespace: Namespace, job_id: str, now: Instant, by: str
) -> Job:
    """Cancel a queued job, mark a running one."""
    row = _locked(connection, namespace, job_id)
    state = JobState(row.state)
    if state in (JobState.CANCELLED, JobState.CANCELLING):
        return to_job(row)
    to = _allowed(state, JobEvent.CANCEL, job_id)
    ended = to is JobState.CANCELLED
    line = "job_cancelled" if ended else "cancel_requested"
    return _move(connection, row, to, now, line=line, cancel_requested=True, by=by)


def resolve(
    connection: Connection, namespace: Namespace, job_id: str, to: JobState, now: Instant, by: str
) -> Job:
    """Decide an uncertain job."""
    row = _locked(connection, namespace, job_id)
    if (event := _DECISIONS.get(to)) is None:
        raise ValueError(f"an uncertain job can't be resolved to {to}")
    state = JobState(row.state)
    if state is not JobState.UNCERTAIN:
        raise ConflictError(f"job {job_id} is {state}, not uncertain", job_id=job_id)
    # Whoever wants another attempt now has changed their mind about an earlier cancel.
    cancel = row.cancel_requested and to is not JobState.QUEUED
    to = step(state, event)
    return _move(connection, row, to, now, line="job_resolved", cancel_requested=cancel, by=by)


_DECISIONS = {
    JobState.SUCCEEDED: JobEvent.RESOLVE_SUCCEEDED,
    JobState.FAILED: JobEvent.RESOLVE_FAILED,
    JobState.QUEUED: JobEvent.RETRY,
}


def retry(
    connection: Connection, namespace: Namespace, job_id: str, doubt: Doubt, now: Instant, by: str
) -> Job:
    """Queue a job again that has ended without success, as if it had never been tried."""
    row = _locked(connection, namespace, job_id)
    state = JobState(row.state)
    if state in _UNDER_WAY:
        return to_job(row)
    to = _allowed(state, JobEvent.AGAIN, job_id)
    if (barred := bar(_last_effects(connection, row), doubt)) is not None:
        detail = f"job {job_id} is not run again: {_BARRED[barred]}"
        raise ConflictError(detail, job_id=job_id, state=state, reason=barred)
    connection.execute(_FRESH, {"b_number": row.number})
    return _move(connection, row, to, now, line="job_retried", cancel_requested=False, by=by)


_UNDER_WAY = (JobState.QUEUED, JobState.RUNNING)
_BARRED = {
    Bar.EFFECT_UNCERTAIN: "an effect was begun, and nobody knows whether it happened",
    Bar.EFFECT_WOULD_REPEAT: "an effect that it has done would be done a second time",
}
_FRESH = schema.CHANGE_JOB.values(attempts=0, free_losses=0)
_LAST_EFFECTS = (
    select(_effects.c.effect, _effects.c.done_at)
    .join_from(_effects, _attempts)
    .where(_attempts.c.job == bindparam("job"), _attempts.c.number == bindparam("number"))
)


def _last_effects(connection: Connection, job: AnyRow) -> list[EffectMark]:
    rows = connection.execute(_LAST_EFFECTS, {"job": job.number, "number": job.last_attempt})
    return [EffectMark(once=row.effect == "once", done=row.done_at is not None) for row in rows]


def _locked(connection: Connection, namespace: Namespace, job_id: str) -> AnyRow:
    found = connection.execute(_LOCKED, {"namespace": namespace, "job_id": job_id}).one_or_none()
    if found is None:
        raise NotFoundError(f"no job {job_id}", job_id=job_id)
    return found


def _allowed(state: JobState, event: JobEvent, job_id: str) -> JobState:
    try:
        return step(state, event)
    except IllegalTransitionError as error:
        raise ConflictError(f"job {job_id} is {state}", job_id=job_id, state=state) from error


def _move(
    connection: Connection,
    row: AnyRow,
    to: JobState,
    now: Instant,
    *,
    line: str,
    cancel_requested: bool,
    by: str = "",
) -> Job:
    keeps_failure = to not in (JobState.SUCCEEDED, JobState.QUEUED)
    moved = connection.execute(
        _MOVE,
        {
            "b_number": row.number,
            "state": to.value,
            "cancel_requested": cancel_requested,
            "not_before": now if to is JobState.QUEUED else row.not_before,
            "finished_at": now if to in TERMINAL else None,
            "failure": row.failure if keeps_failure else None,
            # A job that has ended is in nobody's hands.
            "control": Control.AUTOMATION.value if to in TERMINAL else row.control,
            "control_by": "" if to in TERMINAL else row.control_by,
        },
    ).one()
    history.append(
        connection,
        row.number,
        row.last_event,
        [(line, {"from": row.state, "to": to.value} | ({"by": by} if by else {}), now)],
        attempt_id=None,
    )
    return to_job(moved)
