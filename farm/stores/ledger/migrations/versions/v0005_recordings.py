"""Artifacts that are told of before they are there: recordings, with their state."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: what is there has been handed in whole."""
    op.add_column("artifacts", sa.Column("recording", sa.Text()))
    op.add_column(
        "artifacts", sa.Column("state", sa.Text(), nullable=False, server_default="ready")
    )
    op.add_column("artifacts", sa.Column("detail", sa.Text(), nullable=False, server_default=""))
    where = sa.text("recording IS NOT NULL")
    op.create_index(
        "ix_artifacts_recordings", "artifacts", ["job"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    """Refuse: what is pending or failed has no place in the tables before."""
    raise NotImplementedError("the tables before know no recordings")
