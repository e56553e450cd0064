"""Deleting jobs with all that was written of them."""

from sqlalchemy import Connection, bindparam, delete, select, update

from farm.core.job_states import TERMINAL
from farm.core.model import Namespace
from farm.stores.ledger import schema

_jobs, _attempts = schema.jobs, schema.attempts
_items, _artifacts = schema.items, schema.artifacts

_ENDED = select(_jobs.c.number).where(
    _jobs.c.namespace == bindparam("namespace"),
    _jobs.c.state.in_(sorted(state.value for state in TERMINAL)),
)
_THEIR_ATTEMPTS = select(_attempts.c.id).where(_attempts.c.job.in_(_ENDED))
_IN_ORDER = (
    delete(schema.artifacts).where(schema.artifacts.c.job.in_(_ENDED)),
    delete(schema.items).where(schema.items.c.attempt.in_(_THEIR_ATTEMPTS)),
    delete(schema.effects).where(schema.effects.c.attempt.in_(_THEIR_ATTEMPTS)),
    delete(schema.events).where(schema.events.c.job.in_(_ENDED)),
    delete(schema.borrowings).where(schema.borrowings.c.job.in_(_ENDED)),
    delete(_attempts).where(_attempts.c.job.in_(_ENDED)),
    delete(_jobs).where(_jobs.c.number.in_(_ENDED)),
)
"""What refers to others before those."""


def forget_jobs(connection: Connection, namespace: Namespace) -> int:
    """Delete the namespace's jobs that have ended; return how many."""
    deleted = 0
    for statement in _IN_ORDER:
        deleted = connection.execute(statement, {"namespace": namespace}).rowcount
    return deleted


def drop_findings(connection: Connection, job: int) -> None:
    """Delete what the attempts of a job have found so far: its items, and the rows of its files.

    What happened stays in its history, and the bytes of its files in the artifact store.
    """
    mine = select(_attempts.c.id).where(_attempts.c.job == job)
    connection.execute(delete(_items).where(_items.c.attempt.in_(mine)))
    connection.execute(delete(_artifacts).where(_artifacts.c.job == job))
    connection.execute(update(_attempts).where(_attempts.c.job == job).values(item_count=0))
    connection.execute(update(_jobs).where(_jobs.c.number == job).values(artifact_count=0))
