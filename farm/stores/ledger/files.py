"""Artifacts, as the ledger knows them: under a name of their own in the job."""

import os
from collections.abc import Sequence, Set
from dataclasses import replace

from sqlalchemy import Connection, bindparam, insert, select, update

from farm.core.model import Token
from farm.stores.ledger import schema
from farm.stores.ledger.evidence import fence
from farm.stores.ledger.rows import to_artifact
from farm.stores.records import Artifact

_jobs, _attempts, _artifacts = schema.jobs, schema.attempts, schema.artifacts

_NAMES = select(_artifacts.c.name).where(_artifacts.c.job == bindparam("job"))
_INSERT = insert(_artifacts)
_COUNT = (
    update(_jobs)
    .where(_jobs.c.number == bindparam("b_number"))
    .values(artifact_count=_jobs.c.artifact_count + 1)
)
_OF_JOB = (
    select(*_artifacts.c, _jobs.c.job_id, _attempts.c.attempt_id)
    .join_from(_artifacts, _jobs)
    .join(_attempts, _artifacts.c.attempt == _attempts.c.id)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .order_by(_artifacts.c.id)
)


def add(connection: Connection, artifact: Artifact, token: Token) -> Artifact | None:
    """Add a file under the first free name; None where the attempt holds no more."""
    attempt = fence(connection, artifact.attempt_id, token)
    if attempt is None:
        return None
    taken = {name.casefold() for name in connection.scalars(_NAMES, {"job": attempt.job})}
    artifact = replace(artifact, name=free_name(artifact.name, taken))
    connection.execute(
        _INSERT,
        {
            "job": attempt.job,
            "attempt": attempt.id,
            "name": artifact.name,
            "size": artifact.size,
            "sha256": artifact.sha256,
            "media_type": artifact.media_type,
            "key": artifact.key,
            "created_at": artifact.created_at,
        },
    )
    connection.execute(_COUNT, {"b_number": attempt.job})
    return artifact


def free_name(name: str, taken: Set[str]) -> str:
    """Number a name that is among `taken` (which are case-folded): a.png, a-2.png, a-3.png.

    Names that differ only in case count as one, for file systems that see it so.
    """
    stem, ending = os.path.splitext(name)
    number = 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}{ending}"
    return name


def of_job(connection: Connection, job_id: str) -> Sequence[Artifact]:
    """Read a job's files in the order they came."""
    return [to_artifact(row) for row in connection.execute(_OF_JOB, {"job_id": job_id})]
