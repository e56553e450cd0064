"""Deleting jobs with all that was written of them."""

from collections.abc import Sequence
from itertools import accumulate

from sqlalchemy import BindParameter, Connection, bindparam, delete, insert, select, text, update

from farm.core.job_states import TERMINAL, JobState
from farm.core.model import Instant, Namespace
from farm.errors import ConflictError, NotFoundError
from farm.stores.ledger import schema
from farm.stores.records import ArtifactState

_jobs, _attempts = schema.jobs, schema.attempts
_items, _artifacts = schema.items, schema.artifacts

_discards = schema.discards
_OVER = _jobs.c.state.in_(sorted(state.value for state in TERMINAL))
_OF_NAMESPACE = select(_jobs.c.number).where(_jobs.c.namespace == bindparam("namespace"), _OVER)
_ROWS_AT_ONCE = 50_000
"""About so many rows are deleted in one transaction, unless it is those of one job alone."""
_ENDED_BEFORE = (
    select(_jobs.c.number, (_jobs.c.item_count + _jobs.c.last_event).label("rows"))
    .where(_jobs.c.finished_at <= bindparam("before"), _OVER)
    .order_by(_jobs.c.finished_at)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_ONE = (
    select(_jobs.c.number, _jobs.c.state)
    .where(_jobs.c.namespace == bindparam("namespace"), _jobs.c.job_id == bindparam("job_id"))
    .with_for_update()
)
_THESE: BindParameter[int] = bindparam("numbers", expanding=True)
_THEIR_ATTEMPTS = select(_attempts.c.id).where(_attempts.c.job.in_(_THESE))
_IN_ORDER = (
    insert(_discards).from_select(
        ["what"], select(_jobs.c.job_id).where(_jobs.c.number.in_(_THESE))
    ),
    delete(_artifacts).where(_artifacts.c.job.in_(_THESE)),
    delete(_items).where(_items.c.attempt.in_(_THEIR_ATTEMPTS)),
    delete(schema.effects).where(schema.effects.c.attempt.in_(_THEIR_ATTEMPTS)),
    delete(schema.events).where(schema.events.c.job.in_(_THESE)),
    delete(schema.borrowings).where(schema.borrowings.c.job.in_(_THESE)),
    delete(_attempts).where(_attempts.c.job.in_(_THESE)),
    delete(_jobs).where(_jobs.c.number.in_(_THESE)),
)
"""That the files are to go, first; then what refers to others before those."""
_ALONE = text("SELECT pg_try_advisory_xact_lock(hashtext('tabfarm.retention'))")


_OLD_RECORDINGS = (
    select(_artifacts.c.id, _artifacts.c.key, _artifacts.c.job)
    .join_from(_artifacts, _jobs)
    .where(
        _artifacts.c.recording.is_not(None),
        _artifacts.c.state == ArtifactState.READY.value,
        _artifacts.c.created_at <= bindparam("before"),
        _OVER,
    )
    .order_by(_artifacts.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_DISCARD = insert(_discards)
_COUNT_LESS = (
    update(_jobs)
    .where(_jobs.c.number == bindparam("b_job"))
    .values(artifact_count=_jobs.c.artifact_count - 1)
)


def forget_recordings(connection: Connection, before: Instant, most: int) -> int:
    """Delete the recordings that jobs which have ended made before a moment, alone as above."""
    if not _alone(connection):
        return 0
    found = connection.execute(_OLD_RECORDINGS, {"before": before, "most": most}).all()
    if found:
        connection.execute(_DISCARD, [{"what": row.key} for row in found])
        connection.execute(_COUNT_LESS, [{"b_job": row.job} for row in found])
        connection.execute(delete(_artifacts).where(_artifacts.c.id.in_([r.id for r in found])))
    return len(found)


def forget_jobs(connection: Connection, namespace: Namespace) -> int:
    """Delete the namespace's jobs that have ended; return how many."""
    found = connection.execute(_OF_NAMESPACE, {"namespace": namespace})
    return _delete(connection, found.scalars().all())


def forget_one(connection: Connection, namespace: Namespace, job_id: str) -> None:
    """Delete a job that has ended. Raises NotFoundError, ConflictError."""
    row = connection.execute(_ONE, {"namespace": namespace, "job_id": job_id}).one_or_none()
    if row is None:
        raise NotFoundError(f"no job {job_id}", job_id=job_id)
    if (state := JobState(row.state)) not in TERMINAL:
        raise ConflictError(f"job {job_id} is {state}", job_id=job_id, state=state)
    _delete(connection, [row.number])


def forget_ended(connection: Connection, before: Instant, most: int) -> int:
    """Delete those that ended longest ago; none while another coordinator does so."""
    if not _alone(connection):
        return 0
    found = connection.execute(_ENDED_BEFORE, {"before": before, "most": most}).all()
    sizes = accumulate(row.rows for row in found)
    return _delete(
        connection,
        [
            row.number
            for n, (row, size) in enumerate(zip(found, sizes, strict=True))
            if n == 0 or size <= _ROWS_AT_ONCE
        ],
    )


def _alone(connection: Connection) -> bool:
    """Tell whether no other coordinator deletes now; then none begins before this has ended."""
    return connection.dialect.name == "sqlite" or bool(connection.execute(_ALONE).scalar_one())


def _delete(connection: Connection, numbers: Sequence[int]) -> int:
    if numbers:
        for statement in _IN_ORDER:
            connection.execute(statement, {"numbers": numbers})
    return len(numbers)


def drop_findings(connection: Connection, job: int) -> None:
    """Delete what the attempts of a job have found so far: its items, and the rows of its files.

    What happened stays in its history, and the bytes of its files in the artifact store.
    """
    mine = select(_attempts.c.id).where(_attempts.c.job == job)
    connection.execute(delete(_items).where(_items.c.attempt.in_(mine)))
    connection.execute(delete(_artifacts).where(_artifacts.c.job == job))
    connection.execute(update(_attempts).where(_attempts.c.job == job).values(item_count=0))
    connection.execute(update(_jobs).where(_jobs.c.number == job).values(artifact_count=0))
