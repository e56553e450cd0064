"""Namespaces take turns."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WAITS = sa.text("state = 'queued' AND control = 'automation'")


def upgrade() -> None:
    """Add the turns, none of which has been had, and what the queue is read by."""
    op.create_index(
        "ix_jobs_waiting",
        "jobs",
        ["state", "namespace", "match_key", "number"],
        sqlite_where=_WAITS,
        postgresql_where=_WAITS,
    )
    op.create_index(
        "ix_jobs_next_start",
        "jobs",
        ["state", "not_before"],
        sqlite_where=_WAITS,
        postgresql_where=_WAITS,
    )
    op.create_table(
        "turns",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("turn", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Forget the turns."""
    op.drop_table("turns")
    op.drop_index("ix_jobs_next_start", "jobs")
    op.drop_index("ix_jobs_waiting", "jobs")
