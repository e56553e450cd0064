"""Deployments, and the task queues they serve."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; nothing is declared yet."""
    op.create_table(
        "deployments",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name", name="pk_deployments"),
    )


def downgrade() -> None:
    """Forget what was declared."""
    op.drop_table("deployments")
