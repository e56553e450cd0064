"""Who has control of a job."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: of every job there is automation has control."""
    op.add_column(
        "jobs", sa.Column("control", sa.Text(), nullable=False, server_default="automation")
    )
    op.add_column("jobs", sa.Column("control_by", sa.Text(), nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("asked", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Refuse: a paused job would begin."""
    raise NotImplementedError("the tables before know of no pause")
