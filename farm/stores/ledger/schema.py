"""The tables. Every change here needs a revision under `migrations/versions`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    literal_column,
    update,
)

Key = BigInteger().with_variant(Integer(), "sqlite")
"""A number the database gives out; SQLite does so for INTEGER only."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

coordinators = Table(
    "coordinators",
    metadata,
    Column("life", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("lease_until", Double, nullable=False),
)
"""The lives of those that share the database, each until its lease ends by the database's clock."""

agents = Table(
    "agents",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("token_id", Text, nullable=False),
)
"""With which token each agent was last let in, where several coordinators let agents in."""

# Wide texts come last: SQLite then reads the other columns without their overflow pages.
jobs = Table(
    "jobs",
    metadata,
    Column("number", Key, primary_key=True),
    Column("job_id", Text, nullable=False, unique=True),
    Column("namespace", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("match_key", Text, nullable=False),
    Column("not_before", Double, nullable=False),
    Column("name", Text, nullable=False),
    Column("idempotency_key", Text),
    Column("body_hash", Text, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("free_losses", Integer, nullable=False),
    Column("last_attempt", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("item_count", BigInteger, nullable=False),
    Column("artifact_count", Integer, nullable=False),
    Column("last_event", BigInteger, nullable=False),
    Column("control", Text, nullable=False, server_default="automation"),
    Column("control_by", Text, nullable=False, server_default=""),
    Column("asked", Text, nullable=False, server_default=""),
    Column("claimed_by", BigInteger),
    Column("failure", Text),
    Column("spec", Text, nullable=False),
    UniqueConstraint("namespace", "idempotency_key"),
    Index(None, "namespace", "number"),
    Index(None, "state", "number"),
)
_HAS_ENDED = jobs.c.finished_at.is_not(None)
Index(
    "ix_jobs_finished",
    jobs.c.finished_at,
    sqlite_where=_HAS_ENDED,
    postgresql_where=_HAS_ENDED,
)
_QUEUED: ColumnElement[str] = literal_column("'queued'")
_AUTOMATION: ColumnElement[str] = literal_column("'automation'")
WAITS: ColumnElement[bool] = and_(jobs.c.state == _QUEUED, jobs.c.control == _AUTOMATION)
"""In the queue, and not paused. Said without parameters, for the same reason as `RUNNING`."""
Index(
    "ix_jobs_waiting",
    jobs.c.state,  # always the same, but SQLite's planner prefers an index by what is equal
    jobs.c.namespace,
    jobs.c.match_key,
    jobs.c.number,
    sqlite_where=WAITS,
    postgresql_where=WAITS,
)
Index(
    "ix_jobs_next_start",
    jobs.c.state,
    jobs.c.not_before,
    sqlite_where=WAITS,
    postgresql_where=WAITS,
)

turns = Table(
    "turns",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("turn", BigInteger, nullable=False),
)
"""Which namespace has had its turn last: the one with the highest number."""
_IS_CLAIMED = jobs.c.claimed_by.is_not(None)
Index(
    "ix_jobs_claimed",
    jobs.c.claimed_by,
    sqlite_where=_IS_CLAIMED,
    postgresql_where=_IS_CLAIMED,
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("attempt_id", Text, nullable=False, unique=True),
    Column("job", Key, ForeignKey("jobs.number"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("client_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("context_id", Text, nullable=False),
    Column("token_epoch", BigInteger, nullable=False),
    Column("token_counter", BigInteger, nullable=False),
    Column("command_id", Text, nullable=False),
    Column("began", Boolean, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("item_count", BigInteger, nullable=False),
    Column("owner", BigInteger),
    Column("orphaned_at", Double),
    Column("failure", Text),
    UniqueConstraint("job", "number"),
)
RUNNING: ColumnElement[str] = literal_column("'running'")
"""Not as a parameter: SQLite uses a partial index only where it sees the very value."""
_IS_RUNNING = attempts.c.state == RUNNING
Index(
    "ix_attempts_running",
    attempts.c.id,
    sqlite_where=_IS_RUNNING,
    postgresql_where=_IS_RUNNING,
)

effects = Table(
    "effects",
    metadata,
    Column("id", Key, primary_key=True),
    Column("attempt", Key, ForeignKey("attempts.id"), nullable=False),
    Column("effect_id", Text, nullable=False),
    Column("step_index", Integer),
    Column("effect", Text, nullable=False),
    Column("observed", Boolean, nullable=False),
    Column("method", Text),
    Column("url", Text),
    Column("begun_at", Double, nullable=False),
    Column("done_at", Double),
    Index(None, "attempt", "effect_id"),
)

events = Table(
    "events",
    metadata,
    Column("job", Key, ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("attempt_id", Text),
    Column("at", Double, nullable=False),
    Column("data", Text, nullable=False),
    sqlite_with_rowid=False,
)

items = Table(
    "items",
    metadata,
    Column("id", Key, primary_key=True),
    Column("attempt", Key, ForeignKey("attempts.id"), nullable=False),
    Column("dataset", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Index(None, "attempt", "id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("job", Key, ForeignKey("jobs.number"), nullable=False),
    Column("attempt", Key, ForeignKey("attempts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("recording", Text),
    Column("state", Text, nullable=False, server_default="ready"),
    Column("detail", Text, nullable=False, server_default=""),
    UniqueConstraint("job", "name"),
    Index(None, "attempt"),
)
_IS_RECORDING = artifacts.c.recording.is_not(None)
Index(
    "ix_artifacts_recordings",
    artifacts.c.job,
    sqlite_where=_IS_RECORDING,
    postgresql_where=_IS_RECORDING,
)

discards = Table(
    "discards",
    metadata,
    Column("what", Text, primary_key=True),
)
"""What is to go of the files: a job's id stands for all of its own, a key for one."""

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("sha256", Text, nullable=False, unique=True),
    Column("scope", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("bounds", Text),
)

namespaces = Table(
    "namespaces",
    metadata,
    Column("name", Text, primary_key=True),
    Column("origin", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("placement", Text, nullable=False, server_default="unplaced"),
    Column("labels", Text, nullable=False, server_default="[]"),
)

borrowings = Table(
    "borrowings",
    metadata,
    Column("job", Key, ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text),
    Column("mode", Text, nullable=False),
    Column("secret", LargeBinary),
    Index(None, "namespace", "name"),
)
"""What jobs have of the farm: a saved identity, the secret of a proxy of their own, or both."""

identities = Table(
    "identities",
    metadata,
    Column("id", Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("cookies", Integer),
    Column("origins", Integer),
    Column("state_bytes", BigInteger),
    Column("saved_at", Double),
    Column("saved_by", Text),
    Column("options", Text, nullable=False),
    Column("proxy", Text),
    Column("secret", LargeBinary),
    Column("state", LargeBinary),
    UniqueConstraint("namespace", "name"),
)

deployments = Table(
    "deployments",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("queues", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)

CHANGE_JOB = update(jobs).where(jobs.c.number == bindparam("b_number"))
"""The change of one job, without what is changed."""
