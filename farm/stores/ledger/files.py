"""Artifacts, as the ledger knows them: under a name of their own in the job."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, insert, select

from farm.core.model import Token
from farm.stores.ledger import recordings, schema
from farm.stores.ledger.evidence import fence
from farm.stores.ledger.filenames import free_in_job
from farm.stores.ledger.rows import AnyRow, to_artifact
from farm.stores.records import Artifact

_jobs, _attempts, _artifacts = schema.jobs, schema.attempts, schema.artifacts

_INSERT = insert(_artifacts)
_COUNT = schema.CHANGE_JOB.values(artifact_count=_jobs.c.artifact_count + 1)
_OF_JOB = (
    select(*_artifacts.c, _jobs.c.job_id, _attempts.c.attempt_id)
    .join_from(_artifacts, _jobs)
    .join(_attempts, _artifacts.c.attempt == _attempts.c.id)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .order_by(_artifacts.c.id)
)


def add(connection: Connection, artifact: Artifact, token: Token) -> Artifact | None:
    """Add a file under the first free name, or the recording that was pending under its own.

    None where the attempt holds no more, or no such recording is waited for.
    """
    attempt = fence(connection, artifact.attempt_id, token)
    if attempt is None:
        return None
    kept = _recording if artifact.recording is not None else _file
    name = kept(connection, attempt, artifact)
    if name is None:
        return None
    connection.execute(_COUNT, {"b_number": attempt.job})
    return replace(artifact, name=name)


def _recording(connection: Connection, attempt: AnyRow, artifact: Artifact) -> str | None:
    return recordings.fill(connection, attempt.id, artifact)


def _file(connection: Connection, attempt: AnyRow, artifact: Artifact) -> str | None:
    name = free_in_job(connection, attempt.job, artifact.name)
    connection.execute(
        _INSERT,
        {
            "job": attempt.job,
            "attempt": attempt.id,
            "name": name,
            "size": artifact.size,
            "sha256": artifact.sha256,
            "media_type": artifact.media_type,
            "key": artifact.key,
            "created_at": artifact.created_at,
        },
    )
    return name


def of_job(connection: Connection, job_id: str) -> Sequence[Artifact]:
    """Read a job's files in the order they came."""
    return [to_artifact(row) for row in connection.execute(_OF_JOB, {"job_id": job_id})]
