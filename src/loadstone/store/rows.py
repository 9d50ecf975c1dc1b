"""Conversion of runs to rows and back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping

from loadstone.analysis.model import Durations, Trial
from loadstone.result.model import Environment, Measurement, PastSearch, Run
from loadstone.store import codec
from loadstone.store.listing import DURATIONS, status_of, status_of_measurement
from loadstone.store.schema import require_values, storable, trials
from loadstone.system.redaction import Redaction

Row = Mapping[Any, Any] | RowMapping
_TEXTS = ("command", "failure", "title")
_JSON = ("environment", "body")
# Fields with what a user wrote, where no word is Loadstone's own.
_GIVEN = ("workload", "runner")
# Fields with Loadstone's own constants, which redaction must not change.
_OWN_WORDS = frozenset({
    *("action", "actions", "config_id", "criterion", "kind", "name", "samples_file", "scenario"),
    *("state", "status", "unit"),
})  # fmt: skip


def hidden(row: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    """Replace known secrets in a row, and characters that databases reject."""
    # In JSON, characters that databases reject are escaped.
    changed = {name: storable(redaction.text(row[name])) for name in _TEXTS if row.get(name)}
    for name in _JSON:
        if redaction.may_occur_in(row.get(name, "")):
            plain = redaction.data(json.loads(row[name]), _OWN_WORDS)
            plain |= {part: redaction.data(plain[part]) for part in _GIVEN if part in plain}
            changed[name] = codec.dumps(plain)
    return {**row, **changed}


def run_row(run: Run) -> dict[str, Any]:
    """Return the row of a run, without its owner."""
    return {
        "run_id": run.run_id,
        "kind": run.kind,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "command": run.command,
        "failure": run.failure,
        "title": run.title,
        "environment": codec.dumps(run.environment),
    }


def measurement_row(run_id: str, position: int, measurement: Measurement) -> dict[str, Any]:
    """Return the row of a measurement; its trials have rows of their own."""
    capacity = measurement.capacity
    return {
        "run_id": run_id,
        "position": position,
        "scenario": measurement.scenario,
        "title": measurement.title,
        "policy": measurement.policy,
        "status": measurement.status,
        "failure": measurement.failure,
        "config_id": measurement.config_id,
        "rate_rps": capacity.rate_rps if capacity else None,
        "low_rps": capacity.low_rps if capacity else None,
        "high_rps": capacity.high_rps if capacity else None,
        "body": codec.dumps(replace(measurement, trials=())),
    }


def trial_row(run_id: str, position: int, trial: Trial, measurement: Measurement) -> dict[str, Any]:
    """Return the row of a trial; the durations of its iterations are columns."""
    total = trial.stats.total
    return {
        "run_id": run_id,
        "position": position,
        "number": trial.number,
        "rate_rps": trial.rate_rps,
        "started_at": _moment(trial.start_s),
        "status": trial.status,
        "state": trial.verdict.state.value,
        "config_id": _config_id(measurement, trial),
        "throughput_rps": trial.stats.throughput_rps,
        "count": total.count,
        "ok": total.ok,
        **{name: _number(getattr(total, name)) for name in DURATIONS},
        "checks_passed": all(check.success for check in trial.checks),
        "samples_file": trial.samples_file,
        "body": _trial_body(trial),
    }


def require_storable(trial: Trial, measurement: Measurement) -> None:
    """Raise an exception of `codec.BAD_DATA` if a trial cannot be a row."""
    require_values(trials, trial_row("", 0, trial, measurement))


def _trial_body(trial: Trial) -> str:
    plain: Any = codec.to_plain(trial)
    del plain["stats"]["total"]
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def _config_id(measurement: Measurement, trial: Trial) -> str:
    if trial.runner is None or measurement.workload is None:
        return measurement.config_id
    return replace(measurement, workload=measurement.workload.at(trial.runner)).config_id


def _moment(at_s: float | None) -> str:
    return "" if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat("T", "seconds")


def past_search(row: RowMapping) -> PastSearch:
    """Return a search from the row of a measurement joined with its run."""
    measurement = codec.loads(Measurement, row["body"])
    return PastSearch(
        run_id=row["run_id"],
        started_at=row["started_at"],
        scenario=row["scenario"],
        title=row["title"],
        parameters=measurement.parameters,
        capacity=measurement.capacity,
        environment=codec.loads(Environment, row["environment"]),
    )


def run_of(run: Row, measurement_rows: Sequence[Row], trial_rows: Sequence[Row]) -> Run:
    """Build a run from its rows; each list is in order."""
    status, failure = status_of(run)
    return Run(
        run_id=run["run_id"],
        kind=run["kind"],
        status=status,
        started_at=run["started_at"],
        ended_at=run["ended_at"],
        measurements=tuple(_measurement(row, trial_rows, status) for row in measurement_rows),
        environment=codec.loads(Environment, run["environment"]),
        command=run["command"],
        failure=failure,
        title=run["title"],
    )


def _measurement(row: Row, trial_rows: Sequence[Row], status_of_run: str) -> Measurement:
    own = (trial for trial in trial_rows if trial["position"] == row["position"])
    found = codec.loads(Measurement, row["body"])
    return replace(
        found,
        trials=tuple(_trial(trial) for trial in own),
        status=status_of_measurement(found.status, status_of_run),
    )


def _trial(row: Row) -> Trial:
    plain = json.loads(row["body"])
    times: dict[str, Any] = {
        name: math.nan if row[name] is None else row[name] for name in DURATIONS
    }
    total = Durations("total", row["count"], row["ok"], **times)
    plain["stats"]["total"] = codec.to_plain(total)
    return replace(codec.from_plain(Trial, plain), samples_file=row["samples_file"])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
