"""Saved identities, and what jobs borrow."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "borrowings",
        sa.Column("job", KEY, nullable=False, autoincrement=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("job", name="pk_borrowings"),
        sa.ForeignKeyConstraint(["job"], ["jobs.number"], name="fk_borrowings_job_jobs"),
    )
    op.create_index("ix_borrowings_namespace_name", "borrowings", ["namespace", "name"])
    op.create_table(
        "identities",
        sa.Column("id", KEY, nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("cookies", sa.Integer()),
        sa.Column("origins", sa.Integer()),
        sa.Column("state_bytes", sa.BigInteger()),
        sa.Column("saved_at", sa.Double()),
        sa.Column("saved_by", sa.Text()),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("proxy", sa.Text()),
        sa.Column("secret", sa.LargeBinary()),
        sa.Column("state", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id", name="pk_identities"),
        sa.UniqueConstraint("namespace", "name", name="uq_identities_namespace_name"),
    )


def downgrade() -> None:
    """Refuse: saved identities are not thrown away by a migration."""
    raise NotImplementedError("saved identities are kept")
