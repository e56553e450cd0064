"""Jobs: accepted once, and found again."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from sqlalchemy import Connection, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from farm.core.control import Control
from farm.core.job_states import TERMINAL, JobState
from farm.core.model import Instant, Namespace
from farm.errors import ConflictError, NotFoundError
from farm.stores.identity_records import NewBorrowing
from farm.stores.ledger import history, schema
from farm.stores.ledger.rows import AnyRow, to_job, to_json
from farm.stores.records import Job, NewJob

_jobs = schema.jobs

_BY_KEY = select(_jobs).where(
    _jobs.c.namespace == bindparam("namespace"), _jobs.c.idempotency_key == bindparam("key")
)
BY_ID = select(_jobs).where(
    _jobs.c.namespace == bindparam("namespace"), _jobs.c.job_id == bindparam("job_id")
)
_NAMESPACE = select(_jobs.c.namespace).where(_jobs.c.job_id == bindparam("job_id"))
_INSERT = insert(_jobs).returning(_jobs.c.number)
_BORROW = insert(schema.borrowings)
_COUNTS = select(_jobs.c.state, func.count()).group_by(_jobs.c.state)
_CONTROLS = (
    select(_jobs.c.control, func.count())
    .where(_jobs.c.state.in_(sorted(state.value for state in set(JobState) - TERMINAL)))
    .group_by(_jobs.c.control)
)


def accept(connection: Connection, new: NewJob, now: Instant) -> tuple[Job, bool]:
    """Add a job, or find the one accepted under its key before."""
    if (row := _under_its_key(connection, new)) is not None:
        return _same(row, new), True
    job = Job(
        job_id=new.job_id,
        namespace=new.namespace,
        name=new.name,
        state=JobState.QUEUED,
        spec=new.spec,
        match_key=new.match_key,
        idempotency_key=new.idempotency_key,
        max_attempts=new.max_attempts,
        attempts=0,
        free_losses=0,
        cancel_requested=False,
        control=Control.AUTOMATION,
        control_by="",
        asked="",
        failure=None,
        created_at=now,
        not_before=now,
        started_at=None,
        finished_at=None,
        item_count=0,
        artifact_count=0,
    )
    try:
        with connection.begin_nested() if new.idempotency_key is not None else nullcontext():
            number = connection.execute(_INSERT, _to_row(job, new.body_hash)).scalar_one()
    except IntegrityError:
        # Of two at once under one key the other was first; without one it is a fault of ours.
        if (row := _under_its_key(connection, new)) is None:
            raise
        return _same(row, new), True
    if new.borrowing is not None:
        connection.execute(_BORROW, _to_borrowing(number, new, new.borrowing))
    line = ("job_accepted", {"name": new.name}, now)
    history.append(connection, number, 0, [line], attempt_id=None)
    return job, False


def _under_its_key(connection: Connection, new: NewJob) -> AnyRow | None:
    if new.idempotency_key is None:
        return None
    key = {"namespace": new.namespace, "key": new.idempotency_key}
    return connection.execute(_BY_KEY, key).one_or_none()


def _to_borrowing(number: int, new: NewJob, borrowing: NewBorrowing) -> dict[str, object]:
    return {
        "job": number,
        "namespace": new.namespace,
        "name": borrowing.identity,
        "mode": borrowing.mode.value,
        "secret": borrowing.secret,
    }


def _to_row(job: Job, body_hash: str) -> dict[str, object]:
    return {
        "job_id": job.job_id,
        "namespace": job.namespace,
        "name": job.name,
        "state": job.state.value,
        "match_key": job.match_key,
        "idempotency_key": job.idempotency_key,
        "body_hash": body_hash,
        "max_attempts": job.max_attempts,
        "attempts": 0,
        "free_losses": 0,
        "last_attempt": 0,
        "cancel_requested": False,
        "created_at": job.created_at,
        "not_before": job.not_before,
        "item_count": 0,
        "artifact_count": 0,
        "last_event": 1,
        "spec": to_json(job.spec),
    }


def _same(row: AnyRow, new: NewJob) -> Job:
    if row.body_hash != new.body_hash:
        raise ConflictError(
            f"the idempotency key {new.idempotency_key!r} was used with another body",
            job_id=row.job_id,
        )
    return to_job(row)


def job(connection: Connection, namespace: Namespace, job_id: str) -> Job:
    """Read one job. Raises NotFoundError."""
    found = connection.execute(BY_ID, {"namespace": namespace, "job_id": job_id}).one_or_none()
    if found is None:
        raise NotFoundError(f"no job {job_id}", job_id=job_id)
    return to_job(found)


def check_namespace(connection: Connection, namespace: Namespace | None, job_id: str) -> None:
    """Return if the namespace has the job, or any may; see `Ledger.items`. Raises NotFoundError."""
    if namespace is None:
        return
    found = connection.execute(_NAMESPACE, {"job_id": job_id}).scalar_one_or_none()
    if found != namespace:
        raise NotFoundError(f"no job {job_id}", job_id=job_id)


def page(
    connection: Connection,
    namespace: Namespace,
    *,
    state: JobState | None,
    before: str | None,
    limit: int,
) -> Sequence[Job]:
    """Read jobs, newest first."""
    query = select(_jobs).where(_jobs.c.namespace == namespace)
    if state is not None:
        query = query.where(_jobs.c.state == state.value)
    if before is not None:
        last = select(_jobs.c.number).where(
            _jobs.c.namespace == namespace, _jobs.c.job_id == before
        )
        query = query.where(_jobs.c.number < last.scalar_subquery())
    rows = connection.execute(query.order_by(_jobs.c.number.desc()).limit(limit))
    return [to_job(row) for row in rows]


def counts(connection: Connection) -> Mapping[JobState, int]:
    """Count the jobs; every state is named."""
    found = {state: count for state, count in connection.execute(_COUNTS)}  # noqa: C416
    return {state: found.get(state.value, 0) for state in JobState}


def controls(connection: Connection) -> Mapping[Control, int]:
    """Count the jobs that have not ended by who has control; everybody is named."""
    found = {control: count for control, count in connection.execute(_CONTROLS)}  # noqa: C416
    return {control: found.get(control.value, 0) for control in Control}
