"""Recordings: files that are told of before they are there, and told of if they never come."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from farm.core.model import Instant, Namespace
from farm.stores.ledger import schema
from farm.stores.ledger.filenames import free_in_job
from farm.stores.records import Artifact, ArtifactState, Expected, RecordingEnd

NEVER_CAME = "the attempt ended before it was handed in"

_jobs, _artifacts = schema.jobs, schema.artifacts
_PENDING, _READY = ArtifactState.PENDING.value, ArtifactState.READY.value
_OF_ATTEMPT = _artifacts.c.attempt == bindparam("b_attempt")
_ONE = (_OF_ATTEMPT, _artifacts.c.recording == bindparam("b_recording"))

_EXPECT = insert(_artifacts)
_FILL = (
    update(_artifacts)
    .where(*_ONE, _artifacts.c.state == _PENDING)
    .values(
        state=_READY,
        size=bindparam("size"),
        sha256=bindparam("sha256"),
        media_type=bindparam("media_type"),
        key=bindparam("key"),
        created_at=bindparam("created_at"),
    )
    .returning(_artifacts.c.name)
)
_FAIL = (
    update(_artifacts)
    .where(*_ONE, _artifacts.c.state == _PENDING)
    .values(state=ArtifactState.FAILED.value, detail=bindparam("detail"))
)
_EXPLAIN = (
    update(_artifacts).where(*_ONE, _artifacts.c.state == _READY).values(detail=bindparam("detail"))
)
_DISCARD = delete(_artifacts).where(*_ONE, _artifacts.c.state == _PENDING)
_GIVE_UP = (
    update(_artifacts)
    .where(_OF_ATTEMPT, _artifacts.c.state == _PENDING)
    .values(state=ArtifactState.FAILED.value, detail=NEVER_CAME)
)
_SIZE = (
    select(func.coalesce(func.sum(_artifacts.c.size), 0))
    .join_from(_artifacts, _jobs)
    .where(_jobs.c.namespace == bindparam("namespace"), _artifacts.c.recording.is_not(None))
)


def expect(
    connection: Connection, job: int, attempt: int, wanted: Sequence[Expected], now: Instant
) -> None:
    """Tell of what an attempt that begins is to hand in."""
    for one in wanted:
        connection.execute(
            _EXPECT,
            {
                "job": job,
                "attempt": attempt,
                "name": free_in_job(connection, job, one.name),
                "size": 0,
                "sha256": "",
                "media_type": one.media_type,
                "key": "",
                "created_at": now,
                "recording": one.recording,
                "state": _PENDING,
            },
        )


def fill(connection: Connection, attempt: int, artifact: Artifact) -> str | None:
    """Make a pending one ready; return its name, or None where none is waited for any more."""
    name: str | None = connection.scalar(
        _FILL,
        {
            "b_attempt": attempt,
            "b_recording": artifact.recording,
            "size": artifact.size,
            "sha256": artifact.sha256,
            "media_type": artifact.media_type,
            "key": artifact.key,
            "created_at": artifact.created_at,
        },
    )
    return name


def end(connection: Connection, attempt: int, said: RecordingEnd) -> None:
    """Take what the agent says of one that is over; what has been handed in stays."""
    one = {"b_attempt": attempt, "b_recording": said.recording}
    match said.state:
        case "ready":
            connection.execute(_EXPLAIN, one | {"detail": said.detail})
        case "failed":
            connection.execute(_FAIL, one | {"detail": said.detail})
        case "discarded":
            connection.execute(_DISCARD, one)


def give_up(connection: Connection, attempt: int) -> None:
    """Nothing more comes of an attempt: what is still pending has failed."""
    connection.execute(_GIVE_UP, {"b_attempt": attempt})


def size(connection: Connection, namespace: Namespace) -> int:
    """Return how many bytes the recordings of a namespace have together."""
    found: int = connection.scalars(_SIZE, {"namespace": namespace}).one()
    return found
