"""A job's history: numbered lines, without gaps."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from farm.core.model import Instant
from farm.errors import NotFoundError
from farm.stores.ledger import schema
from farm.stores.ledger.rows import to_event, to_json
from farm.stores.records import JobEvent

_events, _jobs = schema.events, schema.jobs

_INSERT = insert(_events)
_NEXT = (
    update(_jobs)
    .where(_jobs.c.job_id == bindparam("b_job_id"))
    .values(last_event=_jobs.c.last_event + 1)
    .returning(_jobs.c.number, _jobs.c.last_event)
)
_AFTER = (
    select(_events.c.seq, _events.c.type, _events.c.attempt_id, _events.c.at, _events.c.data)
    .where(
        _events.c.job
        == select(_jobs.c.number).where(_jobs.c.job_id == bindparam("job_id")).scalar_subquery(),
        _events.c.seq > bindparam("after"),
    )
    .order_by(_events.c.seq)
    .limit(bindparam("most"))
)

Line = tuple[str, Mapping[str, Any], Instant]
"""Type, data, and when it happened."""


def append(
    connection: Connection,
    job: int,
    last: int,
    lines: Sequence[Line],
    *,
    attempt_id: str | None,
) -> int:
    """Write lines after number `last` of a job's history; return the number of the last one.

    The caller keeps that number in `jobs.last_event`, in the same transaction.
    """
    if lines:
        connection.execute(
            _INSERT,
            [
                {
                    "job": job,
                    "seq": seq,
                    "type": type_,
                    "attempt_id": attempt_id,
                    "at": at,
                    "data": to_json(data),
                }
                for seq, (type_, data, at) in enumerate(lines, last + 1)
            ],
        )
    return last + len(lines)


def add(connection: Connection, job_id: str, line: Line, *, attempt_id: str | None) -> None:
    """Write one line. Raises NotFoundError."""
    job = connection.execute(_NEXT, {"b_job_id": job_id}).one_or_none()
    if job is None:
        raise NotFoundError(f"no job {job_id}", job_id=job_id)
    append(connection, job.number, job.last_event - 1, [line], attempt_id=attempt_id)


def after(connection: Connection, job_id: str, number: int, limit: int) -> Sequence[JobEvent]:
    """Read at most `limit` lines after a number."""
    rows = connection.execute(_AFTER, {"job_id": job_id, "after": number, "most": limit})
    return [to_event(job_id, row) for row in rows]
