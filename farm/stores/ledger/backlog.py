"""What is in the queue and what runs, read as a whole."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import Instant, Namespace
from farm.stores.ledger import schema
from farm.stores.ledger.database import Database
from farm.stores.ledger.rows import to_job
from farm.stores.records import Job, Queued

_jobs = schema.jobs

_LATEST = 1_000
"""Durations are looked for among so many of the latest jobs of a namespace."""

_WAITS = (
    _jobs.c.state == JobState.QUEUED.value,
    _jobs.c.not_before <= bindparam("now"),
    _jobs.c.control == Control.AUTOMATION.value,
)
_NUMBERED = (
    select(
        _jobs.c.number,
        func.count().over(partition_by=_jobs.c.match_key).label("total"),
        func.min(_jobs.c.number).over(partition_by=_jobs.c.match_key).label("oldest"),
        func.row_number()
        .over(partition_by=_jobs.c.match_key, order_by=_jobs.c.number)
        .label("place"),
    )
    .where(_jobs.c.namespace == bindparam("namespace"), *_WAITS)
    .subquery()
)
_QUEUED = (
    select(*_jobs.c, _NUMBERED.c.total)
    .join(_NUMBERED, _NUMBERED.c.number == _jobs.c.number)
    .where(_NUMBERED.c.place <= bindparam("first"))
    .order_by(_NUMBERED.c.oldest, _jobs.c.number)
)
_OWN = (
    select(_jobs.c.number)
    .where(_jobs.c.namespace == bindparam("namespace"), _jobs.c.job_id == bindparam("job_id"))
    .scalar_subquery()
)
_AHEAD = select(func.count()).where(
    _jobs.c.match_key == bindparam("match_key"), _jobs.c.number < _OWN, *_WAITS
)
_COUNTS = select(_jobs.c.match_key, func.count()).where(*_WAITS).group_by(_jobs.c.match_key)
_KEYS = select(_jobs.c.job_id, _jobs.c.match_key).where(
    _jobs.c.namespace == bindparam("namespace"),
    _jobs.c.job_id.in_(bindparam("job_ids", expanding=True)),
)
_RECENT = (
    select(
        _jobs.c.number,
        _jobs.c.match_key,
        _jobs.c.state,
        _jobs.c.started_at,
        _jobs.c.finished_at,
    )
    .where(_jobs.c.namespace == bindparam("namespace"))
    .order_by(_jobs.c.number.desc())
    .limit(_LATEST)
    .subquery()
)
_DURATIONS = (
    select(_RECENT.c.finished_at - _RECENT.c.started_at)
    .where(
        _RECENT.c.match_key == bindparam("match_key"),
        _RECENT.c.state == JobState.SUCCEEDED.value,
        _RECENT.c.started_at.is_not(None),
    )
    .order_by(_RECENT.c.number.desc())
    .limit(bindparam("latest"))
)

_attempts, _events = schema.attempts, schema.events
_LAST_STEP = (
    select(func.max(_events.c.seq))
    .where(
        _events.c.job == _attempts.c.job,
        _events.c.attempt_id == _attempts.c.attempt_id,
        _events.c.type == "step_started",
    )
    .correlate(_attempts)
    .scalar_subquery()
)
_STEPS_NOW = (
    select(_jobs.c.job_id, _events.c.data)
    .join(_attempts, _attempts.c.job == _jobs.c.number)
    .join(_events, (_events.c.job == _jobs.c.number) & (_events.c.seq == _LAST_STEP))
    .where(
        _jobs.c.job_id.in_(bindparam("job_ids", expanding=True)),
        _attempts.c.state == schema.RUNNING,
    )
)


class SqlBacklog:
    """The `Backlog` port; what a method promises is said there."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def queued(self, namespace: Namespace, *, first: int, now: Instant) -> Sequence[Queued]:
        """See `Backlog.queued`."""
        return await self._db.read(lambda db: _queued(db, namespace, first, now))

    async def ahead_of(self, job: Job, *, now: Instant) -> int:
        """See `Backlog.ahead_of`."""
        asked = {
            "namespace": job.namespace,
            "job_id": job.job_id,
            "match_key": job.match_key,
            "now": now,
        }
        return await self._db.read(lambda db: int(db.execute(_AHEAD, asked).scalar_one()))

    async def match_keys(self, namespace: Namespace, job_ids: Sequence[str]) -> Mapping[str, str]:
        """See `Backlog.match_keys`."""
        asked = {"namespace": namespace, "job_ids": list(job_ids)}
        return await self._db.read(
            lambda db: {job_id: key for job_id, key in db.execute(_KEYS, asked)}  # noqa: C416
        )

    async def counts_by_key(self, *, now: Instant) -> Mapping[str, int]:
        """See `Backlog.counts_by_key`."""
        return await self._db.read(
            lambda db: {key: count for key, count in db.execute(_COUNTS, {"now": now})}  # noqa: C416
        )

    async def durations_s(self, job: Job, *, latest: int) -> Sequence[float]:
        """See `Backlog.durations_s`."""
        asked = {"namespace": job.namespace, "match_key": job.match_key, "latest": latest}
        return await self._db.read(
            lambda db: [float(took) for took in db.execute(_DURATIONS, asked).scalars()]
        )

    async def steps_now(self, job_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """See `Backlog.steps_now`."""
        asked = {"job_ids": list(job_ids)}
        return await self._db.read(
            lambda db: {job_id: json.loads(data) for job_id, data in db.execute(_STEPS_NOW, asked)}
        )


def _queued(
    connection: Connection, namespace: Namespace, first: int, now: Instant
) -> Sequence[Queued]:
    found: dict[str, tuple[int, list[Job]]] = {}
    asked = {"namespace": namespace, "first": first, "now": now}
    for row in connection.execute(_QUEUED, asked):
        found.setdefault(row.match_key, (row.total, []))[1].append(to_job(row))
    return [
        Queued(match_key=key, count=total, jobs=tuple(jobs)) for key, (total, jobs) in found.items()
    ]
