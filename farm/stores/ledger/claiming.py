"""Which coordinator places a queued job, among those that share the database.

A claim spares the others the work. That one of them starts the job rests on the start alone.
"""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, exists, or_, select, update

from farm.core.job_states import JobState
from farm.stores.ledger import schema
from farm.stores.ledger.membership import NOW

_jobs, _lives = schema.jobs, schema.coordinators

_IS_LIVING = exists(
    select(_lives.c.life).where(_lives.c.life == _jobs.c.claimed_by, _lives.c.lease_until > NOW)
)
_CLAIM = (
    update(_jobs)
    .where(
        _jobs.c.job_id == bindparam("b_job_id"),
        _jobs.c.state == JobState.QUEUED.value,
        or_(
            _jobs.c.claimed_by.is_(None),
            _jobs.c.claimed_by == bindparam("life"),
            ~_IS_LIVING,
        ),
    )
    .values(claimed_by=bindparam("life"))
)
_GIVE_UP_CLAIM = (
    update(_jobs)
    .where(_jobs.c.job_id == bindparam("b_job_id"), _jobs.c.claimed_by == bindparam("life"))
    .values(claimed_by=None)
)
_KEEP = (
    update(_jobs)
    .where(
        _jobs.c.claimed_by == bindparam("life"),
        _jobs.c.job_id.not_in(bindparam("kept", expanding=True)),
    )
    .values(claimed_by=None)
)
_CLAIMED = select(_jobs.c.job_id).where(
    _jobs.c.claimed_by.is_not(None), _jobs.c.claimed_by != bindparam("life"), _IS_LIVING
)


def claim(connection: Connection, job_id: str, life: int) -> bool:
    """Claim a queued job; False if another, living one has."""
    return connection.execute(_CLAIM, {"b_job_id": job_id, "life": life}).rowcount == 1


def give_up_claim(connection: Connection, job_id: str, life: int) -> None:
    """Claim it no more."""
    connection.execute(_GIVE_UP_CLAIM, {"b_job_id": job_id, "life": life})


def keep_claims(connection: Connection, job_ids: Collection[str], life: int) -> None:
    """Claim nothing any more but these."""
    connection.execute(_KEEP, {"life": life, "kept": sorted(job_ids)})


def claimed_by_others(connection: Connection, life: int) -> frozenset[str]:
    """Read which jobs others are placing."""
    return frozenset(connection.execute(_CLAIMED, {"life": life}).scalars())
