"""Several coordinators: who they are, whose an attempt is, and who has claimed a job."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables and columns: what runs is nobody's until somebody takes it over."""
    op.create_table(
        "coordinators",
        sa.Column("life", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("life", name="pk_coordinators"),
    )
    op.create_table(
        "agents",
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("client_id", name="pk_agents"),
    )
    op.add_column("jobs", sa.Column("claimed_by", sa.BigInteger()))
    claimed = sa.text("claimed_by IS NOT NULL")
    op.create_index(
        "ix_jobs_claimed",
        "jobs",
        ["claimed_by"],
        sqlite_where=claimed,
        postgresql_where=claimed,
    )
    op.add_column("attempts", sa.Column("owner", sa.BigInteger()))
    op.add_column("attempts", sa.Column("orphaned_at", sa.Double()))


def downgrade() -> None:
    """Refuse: a job that several know to be claimed would be begun twice."""
    raise NotImplementedError("the tables before know of one coordinator only")
