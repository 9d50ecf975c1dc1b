"""Runs, findings, trials."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("ended_at", sa.Text),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("environment", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_table(
        "findings",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("scenario", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("rate_rps", sa.Float),
        sa.Column("low_rps", sa.Float),
        sa.Column("high_rps", sa.Float),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_findings"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.run_id"], name="fk_findings_run_id_runs", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "trials",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("rate_rps", sa.Float),
        sa.Column("throughput_rps", sa.Float, nullable=False),
        sa.Column("p50_ms", sa.Float),
        sa.Column("p99_ms", sa.Float),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("samples_file", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", "number", name="pk_trials"),
        sa.ForeignKeyConstraint(
            ["run_id", "position"],
            ["findings.run_id", "findings.position"],
            name="fk_trials_run_id_position_findings",
            ondelete="CASCADE",
        ),
    )
