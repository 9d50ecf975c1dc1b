"""The tables. Every change needs a migration in migrations/versions."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

_REJECTED = re.compile("[\0\ud800-\udfff]")
# Oldest first; the last one is current.
REVISIONS = ("1",)

# SQLite can only change named constraints.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Times are ISO 8601 text in UTC, as in the result: SQLite drops time zones.
runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("ended_at", Text),
    Column("command", Text, nullable=False),
    Column("failure", Text),
    Column("title", Text, nullable=False, server_default=""),
    Column("environment", Text, nullable=False),  # JSON
    # Host, pid and start time of the measuring process, to recognise killed runs.
    Column("owner", Text, nullable=False),
    Index(None, "started_at"),
)

measurements = Table(
    "measurements",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("scenario", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("failure", Text),
    Column("config_id", Text, nullable=False),  # empty unless it is a workload of a task
    # Copies for queries; the body has the exact values.
    Column("rate_rps", Float),
    Column("low_rps", Float),
    Column("high_rps", Float),
    Column("body", Text, nullable=False),  # JSON of the measurement without its trials
)

trials = Table(
    "trials",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("rate_rps", Float),
    Column("started_at", Text, nullable=False),  # empty if unknown
    Column("status", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("config_id", Text, nullable=False),  # a step has its own
    Column("throughput_rps", Float, nullable=False),
    # Durations of iterations, which the body does not repeat.
    Column("count", Integer, nullable=False),
    Column("ok", Integer, nullable=False),
    Column("min_s", Float),
    Column("median_s", Float),
    Column("p90_s", Float),
    Column("p95_s", Float),
    Column("p99_s", Float),
    Column("max_s", Float),
    Column("mean_s", Float),
    Column("checks_passed", Boolean, nullable=False),
    Column("samples_file", Text),
    Column("body", Text, nullable=False),  # JSON of the trial
    ForeignKeyConstraint(
        ["run_id", "position"], ["measurements.run_id", "measurements.position"], ondelete="CASCADE"
    ),
)


def storable(text: str) -> str:
    """Replace characters that databases reject.

    PostgreSQL stores no NUL, and no database the halves of surrogate pairs, by which Python stands
    for bytes that are not UTF-8, such as in the name of a file.
    """
    return _REJECTED.sub("\N{REPLACEMENT CHARACTER}", text)


def require_values(table: Table, row: Mapping[Any, Any]) -> None:
    """Raise ValueError if the value of a column does not have the column's type.

    SQLite stores any value in any column.
    """
    for column in table.columns:
        if column.name not in row:
            continue
        value = row[column.name]
        is_absent = value is None and column.nullable
        if not is_absent and not isinstance(value, _kinds(column.type)):
            raise ValueError(f"{column.name} is {value!r:.60}")
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise ValueError(f"{column.name} is too large: {value!r:.60}")


def _kinds(kind: object) -> tuple[type, ...]:
    if isinstance(kind, Boolean):
        return (bool,)
    if isinstance(kind, Integer):
        return (int,)
    return (int, float) if isinstance(kind, Float) else (str,)
