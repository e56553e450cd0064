"""Namespaces with their placement, and the bounds of agents' tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

INFER = """
INSERT INTO namespaces (name, origin, created_at)
SELECT namespace, 'inferred', MIN(created_at) FROM (
    SELECT namespace, created_at FROM tokens
    UNION ALL SELECT namespace, created_at FROM jobs
    UNION ALL SELECT namespace, created_at FROM identities
) AS named GROUP BY namespace
"""


def upgrade() -> None:
    """Make the table, with what tokens, jobs and identities are of; old tokens have no bounds."""
    op.create_table(
        "namespaces",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("placement", sa.Text(), nullable=False, server_default="unplaced"),
        sa.Column("labels", sa.Text(), nullable=False, server_default="[]"),
        sa.PrimaryKeyConstraint("name", name="pk_namespaces"),
    )
    op.execute(INFER)
    op.add_column("tokens", sa.Column("bounds", sa.Text()))


def downgrade() -> None:
    """Refuse: a token would open more than it was made for."""
    raise NotImplementedError("the tables before know no bounds")
