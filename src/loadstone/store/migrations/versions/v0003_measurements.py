"""Measurements in place of findings and performances."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from loadstone.store.migrations.convert import ROW, measurements

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Move searches, fixed loads and workloads, with their trials, into two common tables."""
    runs = list(_runs(op.get_bind()))
    for table in ("trials", "findings", "performances"):
        op.drop_table(table)
    tables = _made_measurements(), _made_trials()
    for run_id, of_run in runs:
        for position, one in enumerate(of_run):
            trials = one.pop("trials")
            row = {"run_id": run_id, "position": position}
            op.bulk_insert(tables[0], [row | _measurement_row(one)])
            op.bulk_insert(tables[1], [row | _trial_row(one, trial) for trial in trials])


def _runs(connection: sa.Connection) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for run_id, status in connection.execute(sa.text("SELECT run_id, status FROM runs")).all():
        of_run = {"run": run_id}
        findings = _bodies(connection, "findings", "position", of_run)
        trials = _bodies(connection, "trials", "position, number", of_run)
        performances = _bodies(connection, "performances", "position", of_run)
        for row, finding in findings:
            finding["trials"] = [
                trial | {"samples_file": its.samples_file}
                for its, trial in trials
                if its.position == row.position
            ]
        plain = {
            "status": status,
            "findings": [finding for _, finding in findings],
            "performances": [one for _, one in performances],
        }
        yield run_id, list(measurements(plain))


def _bodies(
    connection: sa.Connection, table: str, order: str, of_run: dict[str, str]
) -> list[tuple[Any, dict[str, Any]]]:
    query = f"SELECT * FROM {table} WHERE run_id = :run ORDER BY {order}"  # noqa: S608 (constant names)
    return [(row, json.loads(row.body)) for row in connection.execute(sa.text(query), of_run)]


def _measurement_row(one: Mapping[str, Any]) -> dict[str, Any]:
    capacity = one.get("capacity") or {}
    columns = {name: one[name] for name in ("scenario", "title", "policy", "status")}
    return columns | {
        "failure": one.get("failure"),
        "config_id": _config_id(one.get("spec", ""), ""),
        **{name: capacity.get(name) for name in ("rate_rps", "low_rps", "high_rps")},
        "body": json.dumps(one, separators=(",", ":"), allow_nan=False),
    }


def _trial_row(one: Mapping[str, Any], trial: dict[str, Any]) -> dict[str, Any]:
    stats = dict(trial["stats"])
    total = stats.pop("total")
    began_s = trial.get("start_s")
    return {
        "number": trial["number"],
        "rate_rps": trial["rate_rps"],
        "started_at": datetime.fromtimestamp(began_s, UTC).isoformat("T", "seconds")
        if began_s
        else "",
        "status": trial.get("status", "finished"),
        "state": trial["verdict"]["state"],
        "config_id": _config_id(one.get("spec", ""), trial.get("runner", "")),
        "throughput_rps": stats["throughput_rps"],
        "count": total["count"],
        "ok": total["ok"],
        **{name: None if isinstance(total[name], str) else total[name] for name in ROW},
        "checks_passed": all(check["success"] for check in trial.get("checks", [])),
        "samples_file": trial["samples_file"],
        "body": json.dumps(trial | {"stats": stats}, separators=(",", ":"), allow_nan=False),
    }


def _config_id(spec: str, runner: str) -> str:
    """Return the id of a load as `loadstone.result.model.config_id` did at this revision."""
    if not spec:
        return ""
    known = json.loads(spec) | ({"runner": json.loads(runner)} if runner else {})
    load = {key: known.get(key) or {} for key in ("scenario", "runner", "contexts", "hooks")}
    text = json.dumps(load, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _made_measurements() -> sa.Table:
    return op.create_table(
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


def _made_trials() -> sa.Table:
    return op.create_table(
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
        *(sa.Column(name, sa.Float) for name in ROW),
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
