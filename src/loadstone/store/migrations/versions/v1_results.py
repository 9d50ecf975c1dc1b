"""The tables of release 0.1."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables of runs, their measurements and their trials."""
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("ended_at", sa.Text),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("title", sa.Text, nullable=False, server_default=""),
        sa.Column("environment", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_table(
        "measurements",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("scenario", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("config_id", sa.Text, nullable=False),
        sa.Column("rate_rps", sa.Float),
        sa.Column("low_rps", sa.Float),
        sa.Column("high_rps", sa.Float),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_measurements"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.run_id"], name="fk_measurements_run_id_runs", ondelete="CASCADE"
        ),
    )
    durations = ("min_s", "median_s", "p90_s", "p95_s", "p99_s", "max_s", "mean_s")
    op.create_table(
        "trials",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("rate_rps", sa.Float),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("config_id", sa.Text, nullable=False),
        sa.Column("throughput_rps", sa.Float, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("ok", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Float) for name in durations),
        sa.Column("checks_passed", sa.Boolean, nullable=False),
        sa.Column("samples_file", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", "number", name="pk_trials"),
        sa.ForeignKeyConstraint(
            ["run_id", "position"],
            ["measurements.run_id", "measurements.position"],
            name="fk_trials_run_id_position_measurements",
            ondelete="CASCADE",
        ),
    )
