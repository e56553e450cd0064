"""Attempts: begun by a compare-and-swap, ended once, together with what becomes of the job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, insert, select, update

from farm.core.control import Control, in_queue
from farm.core.job_states import AT_REST, TERMINAL, AttemptState, JobEvent, JobState, step
from farm.core.model import ClientId, ContextId, Instant, Token
from farm.errors import ConflictError, NotFoundError
from farm.stores.ledger import forgetting, history, identities, queue, recordings, schema
from farm.stores.ledger.fencing import check_owner
from farm.stores.ledger.rows import AnyRow, to_attempt, to_job, to_json_or_none
from farm.stores.records import Attempt, Expected, Finish, Job

_jobs, _attempts = schema.jobs, schema.attempts

_START = (
    update(_jobs)
    .where(
        _jobs.c.job_id == bindparam("b_job_id"),
        _jobs.c.state == JobState.QUEUED.value,
        _jobs.c.cancel_requested.is_(False),
        _jobs.c.control == Control.AUTOMATION.value,
        identities.is_free(_jobs.c.number),
    )
    .values(
        state=step(JobState.QUEUED, JobEvent.START).value,
        last_attempt=_jobs.c.last_attempt + 1,
        last_event=_jobs.c.last_event + 1,
        claimed_by=None,
        started_at=func.coalesce(_jobs.c.started_at, bindparam("now")),
    )
    .returning(_jobs.c.number, _jobs.c.last_attempt, _jobs.c.last_event)
)
_INSERT = insert(_attempts)
ALL = select(*_attempts.c, _jobs.c.job_id).join_from(_attempts, _jobs)
"""As `to_attempt` takes them."""
_ONE = ALL.where(_attempts.c.attempt_id == bindparam("attempt_id"))
_JOB_OF = (
    select(_jobs)
    .join_from(_attempts, _jobs)
    .where(_attempts.c.attempt_id == bindparam("attempt_id"))
)
_OF_JOB = ALL.where(_jobs.c.job_id == bindparam("job_id")).order_by(_attempts.c.number)
_RUNNING = ALL.where(_attempts.c.state == schema.RUNNING).order_by(_attempts.c.id)

_TO_END = (
    select(
        _attempts.c.id,
        _attempts.c.item_count.label("attempt_items"),
        _attempts.c.last_seq,
        _attempts.c.owner,
        *(c for c in _jobs.c if c.name != "spec"),
    )
    .join_from(_attempts, _jobs)
    .where(
        _attempts.c.attempt_id == bindparam("attempt_id"),
        _attempts.c.state == AttemptState.RUNNING.value,
    )
    .with_for_update()
)
_END = (
    update(_attempts)
    .where(_attempts.c.id == bindparam("b_id"))
    .values(state=bindparam("state"), failure=bindparam("failure"), ended_at=bindparam("ended_at"))
)
_MOVE = schema.CHANGE_JOB.values(
    state=bindparam("state"),
    match_key=bindparam("match_key"),
    attempts=bindparam("attempts"),
    free_losses=bindparam("free_losses"),
    failure=bindparam("failure"),
    not_before=bindparam("not_before"),
    finished_at=bindparam("finished_at"),
    item_count=bindparam("item_count"),
    last_event=bindparam("last_event"),
    control=bindparam("control"),
    control_by=bindparam("control_by"),
    asked="",
).returning(*_jobs.c)

_WAYS = {
    (JobState.RUNNING, JobState.SUCCEEDED): (JobEvent.SUCCEED,),
    (JobState.RUNNING, JobState.FAILED): (JobEvent.FAIL,),
    (JobState.RUNNING, JobState.QUEUED): (JobEvent.RETRY,),
    (JobState.RUNNING, JobState.TIMED_OUT): (JobEvent.TIME_OUT,),
    (JobState.RUNNING, JobState.UNCERTAIN): (JobEvent.DOUBT,),
    (JobState.RUNNING, JobState.CANCELLED): (JobEvent.CANCEL, JobEvent.STOPPED),
    (JobState.CANCELLING, JobState.SUCCEEDED): (JobEvent.SUCCEED,),
    (JobState.CANCELLING, JobState.UNCERTAIN): (JobEvent.DOUBT,),
    (JobState.CANCELLING, JobState.FAILED): (JobEvent.FAIL,),
    # A job that was to be cancelled is not tried again, and did not run out of time.
    (JobState.CANCELLING, JobState.QUEUED): (JobEvent.STOPPED,),
    (JobState.CANCELLING, JobState.TIMED_OUT): (JobEvent.STOPPED,),
    (JobState.CANCELLING, JobState.CANCELLED): (JobEvent.STOPPED,),
}
"""By which events a job gets from where it is to where an ended attempt takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An attempt to be begun."""

    job_id: str
    attempt_id: str
    command_id: str
    client_id: ClientId
    epoch: int
    context_id: ContextId
    token: Token
    recordings: Sequence[Expected] = ()


def start(connection: Connection, wanted: Start, now: Instant, life: int | None) -> Attempt | None:
    """Take a queued job for an attempt; None if another was first, or has its identity."""
    identities.lock(connection, wanted.job_id)
    job = connection.execute(_START, {"b_job_id": wanted.job_id, "now": now}).one_or_none()
    if job is None:
        return None
    queue.count_turn(connection, job.number)
    attempt = connection.execute(
        _INSERT,
        {
            "attempt_id": wanted.attempt_id,
            "job": job.number,
            "number": job.last_attempt,
            "state": AttemptState.RUNNING.value,
            "client_id": wanted.client_id,
            "epoch": wanted.epoch,
            "context_id": wanted.context_id,
            "token_epoch": wanted.token.store_epoch,
            "token_counter": wanted.token.counter,
            "command_id": wanted.command_id,
            "began": False,
            "last_seq": 0,
            "started_at": now,
            "item_count": 0,
            "owner": life,
        },
    ).inserted_primary_key
    if wanted.recordings and attempt is not None:
        recordings.expect(connection, job.number, attempt.id, wanted.recordings, now)
    data = {"number": job.last_attempt, "client_id": wanted.client_id}
    line = ("attempt_started", data | {"context_id": wanted.context_id}, now)
    history.append(connection, job.number, job.last_event - 1, [line], attempt_id=wanted.attempt_id)
    return Attempt(
        attempt_id=wanted.attempt_id,
        job_id=wanted.job_id,
        number=job.last_attempt,
        state=AttemptState.RUNNING,
        client_id=wanted.client_id,
        epoch=wanted.epoch,
        context_id=wanted.context_id,
        token=wanted.token,
        command_id=wanted.command_id,
        began=False,
        last_seq=0,
        failure=None,
        started_at=now,
        ended_at=None,
        item_count=0,
    )


def one(connection: Connection, attempt_id: str) -> Attempt:
    """Read one attempt. Raises NotFoundError."""
    found = connection.execute(_ONE, {"attempt_id": attempt_id}).one_or_none()
    if found is None:
        raise NotFoundError(f"no attempt {attempt_id}", attempt_id=attempt_id)
    return to_attempt(found)


def job_of(connection: Connection, attempt_id: str) -> Job:
    """Read the job an attempt is of. Raises NotFoundError."""
    found = connection.execute(_JOB_OF, {"attempt_id": attempt_id}).one_or_none()
    if found is None:
        raise NotFoundError(f"no attempt {attempt_id}", attempt_id=attempt_id)
    return to_job(found)


def of_job(connection: Connection, job_id: str) -> Sequence[Attempt]:
    """Read a job's attempts in order."""
    return _read(connection, _OF_JOB, {"job_id": job_id})


def running(connection: Connection) -> Sequence[Attempt]:
    """Read the attempts that have not ended."""
    return _read(connection, _RUNNING, {})


def finish(connection: Connection, end: Finish, now: Instant, life: int | None) -> Job | None:
    """End an attempt and move its job; None if it had ended.

    Raises:
        ConflictError: If it has said more than what the end rests on.
    """
    job = connection.execute(_TO_END, {"attempt_id": end.attempt_id}).one_or_none()
    if job is None:
        return None
    check_owner(job, life)
    if end.rests_on not in (None, job.last_seq):
        raise ConflictError("the attempt has said more since its end was decided")
    state = _after(JobState(job.state), end.job_state)
    failure = to_json_or_none(end.failure)
    connection.execute(
        _END,
        {
            "b_id": job.id,
            "state": end.attempt_state.value,
            "failure": failure,
            "ended_at": now,
        },
    )
    if end.records:
        recordings.give_up(connection, job.id)
    # A job that was to be cancelled meanwhile goes nowhere, and keeps what it has.
    falls_back_to = end.falls_back_to if state is JobState.QUEUED else None
    if falls_back_to is not None:
        forgetting.drop_findings(connection, job.number)
    lines: list[history.Line] = [(type_, data, now) for type_, data in end.events]
    if state is not end.job_state:
        lines.append(("job_cancelled", {"instead": end.job_state.value}, now))
    last = history.append(connection, job.number, job.last_event, lines, attempt_id=end.attempt_id)
    queued = state is JobState.QUEUED
    control = in_queue(Control(job.control)) if queued else Control.AUTOMATION
    moved = connection.execute(
        _MOVE,
        {
            "control": control.value,
            "control_by": job.control_by if control is Control.PAUSED else "",
            "b_number": job.number,
            "state": state.value,
            "match_key": falls_back_to or job.match_key,
            "attempts": job.attempts + end.counts,
            "free_losses": job.free_losses + (not end.counts and falls_back_to is None),
            "failure": failure if state in AT_REST else None,
            "not_before": end.not_before if queued else job.not_before,
            "finished_at": now if state in TERMINAL else None,
            "item_count": 0 if falls_back_to else _counting_items(job, state),
            "last_event": last,
        },
    ).one()
    return to_job(moved)


def _after(state: JobState, wanted: JobState) -> JobState:
    if (way := _WAYS.get((state, wanted))) is None:
        raise ValueError(f"an attempt that ends can't leave a job that is {state} {wanted}")
    for event in way:
        state = step(state, event)
    return state


def _counting_items(job: AnyRow, state: JobState) -> int:
    """Count what `items` yields: the succeeded attempt's, else the most any attempt has."""
    count: int = job.attempt_items if state is JobState.SUCCEEDED else job.item_count
    return count


def _read(
    connection: Connection, query: Select[*tuple[Any, ...]], parameters: dict[str, str]
) -> Sequence[Attempt]:
    return [to_attempt(row) for row in connection.execute(query, parameters)]
