"""Jobs that are deleted: found by when they ended; their files are remembered till they go."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ENDED = sa.text("finished_at IS NOT NULL")


def upgrade() -> None:
    """Make the table and the indices."""
    op.create_table(
        "discards",
        sa.Column("what", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("what", name="pk_discards"),
    )
    op.create_index(
        "ix_jobs_finished",
        "jobs",
        ["finished_at"],
        sqlite_where=_ENDED,
        postgresql_where=_ENDED,
    )
    op.create_index("ix_artifacts_attempt", "artifacts", ["attempt"])


def downgrade() -> None:
    """Forget which files are left over."""
    op.drop_index("ix_artifacts_attempt", "artifacts")
    op.drop_index("ix_jobs_finished", "jobs")
    op.drop_table("discards")
