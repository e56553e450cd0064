"""The first tables: jobs, attempts, their evidence, artifacts, tokens, meta."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables, with the count of starts at 0."""
    meta = op.create_table(
        "meta",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_meta"),
    )
    op.bulk_insert(meta, [{"name": "store_epoch", "value": 0}])
    _jobs()
    _attempts()
    _effects()
    _events()
    _items()
    _artifacts()
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("revoked_at", sa.Double()),
        sa.PrimaryKeyConstraint("token_id", name="pk_tokens"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )


def downgrade() -> None:
    """Refuse: a ledger is not thrown away by a migration."""
    raise NotImplementedError("there is nothing before the first revision")


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", KEY, nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("match_key", sa.Text(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("free_losses", sa.Integer(), nullable=False),
        sa.Column("last_attempt", sa.Integer(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("finished_at", sa.Double()),
        sa.Column("item_count", sa.BigInteger(), nullable=False),
        sa.Column("artifact_count", sa.Integer(), nullable=False),
        sa.Column("last_event", sa.BigInteger(), nullable=False),
        sa.Column("failure", sa.Text()),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("job_id", name="uq_jobs_job_id"),
        sa.UniqueConstraint(
            "namespace", "idempotency_key", name="uq_jobs_namespace_idempotency_key"
        ),
    )
    op.create_index("ix_jobs_namespace_number", "jobs", ["namespace", "number"])
    op.create_index("ix_jobs_state_number", "jobs", ["state", "number"])


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("job", KEY, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("context_id", sa.Text(), nullable=False),
        sa.Column("token_epoch", sa.BigInteger(), nullable=False),
        sa.Column("token_counter", sa.BigInteger(), nullable=False),
        sa.Column("command_id", sa.Text(), nullable=False),
        sa.Column("began", sa.Boolean(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.Column("item_count", sa.BigInteger(), nullable=False),
        sa.Column("failure", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.ForeignKeyConstraint(["job"], ["jobs.number"], name="fk_attempts_job_jobs"),
        sa.UniqueConstraint("attempt_id", name="uq_attempts_attempt_id"),
        sa.UniqueConstraint("job", "number", name="uq_attempts_job_number"),
    )
    running = sa.text("state = 'running'")
    op.create_index(
        "ix_attempts_running", "attempts", ["id"], sqlite_where=running, postgresql_where=running
    )


def _effects() -> None:
    op.create_table(
        "effects",
        sa.Column("id", KEY, nullable=False),
        sa.Column("attempt", KEY, nullable=False),
        sa.Column("effect_id", sa.Text(), nullable=False),
        sa.Column("step_index", sa.Integer()),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("observed", sa.Boolean(), nullable=False),
        sa.Column("method", sa.Text()),
        sa.Column("url", sa.Text()),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.Column("done_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_effects"),
        sa.ForeignKeyConstraint(["attempt"], ["attempts.id"], name="fk_effects_attempt_attempts"),
    )
    op.create_index("ix_effects_attempt_effect_id", "effects", ["attempt", "effect_id"])


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("job", KEY, nullable=False, autoincrement=False),
        sa.Column("seq", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.Text()),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job", "seq", name="pk_events"),
        sa.ForeignKeyConstraint(["job"], ["jobs.number"], name="fk_events_job_jobs"),
        sqlite_with_rowid=False,
    )


def _items() -> None:
    op.create_table(
        "items",
        sa.Column("id", KEY, nullable=False),
        sa.Column("attempt", KEY, nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
        sa.ForeignKeyConstraint(["attempt"], ["attempts.id"], name="fk_items_attempt_attempts"),
    )
    op.create_index("ix_items_attempt_id", "items", ["attempt", "id"])


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("job", KEY, nullable=False),
        sa.Column("attempt", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.ForeignKeyConstraint(["job"], ["jobs.number"], name="fk_artifacts_job_jobs"),
        sa.ForeignKeyConstraint(["attempt"], ["attempts.id"], name="fk_artifacts_attempt_attempts"),
        sa.UniqueConstraint("job", "name", name="uq_artifacts_job_name"),
    )
