"""Workloads of tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table of performed workloads, and a run's title."""
    op.add_column("runs", sa.Column("title", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "performances",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("scenario", sa.Text, nullable=False),
        sa.Column("config_id", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("ok", sa.Integer, nullable=False),
        sa.Column("min_s", sa.Float),
        sa.Column("median_s", sa.Float),
        sa.Column("p90_s", sa.Float),
        sa.Column("p95_s", sa.Float),
        sa.Column("max_s", sa.Float),
        sa.Column("mean_s", sa.Float),
        sa.Column("pass_sla", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_performances"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.run_id"], name="fk_performances_run_id_runs", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_performances_config_id", "performances", ["config_id"])
